package main

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/swizzle-rt/swizzle/serve/openai"
)

const smollm2 = "SmolLM2-135M-Instruct.Q4_1.gguf"

// modelPath finds a test model; without it the test is skipped, in CI it fails.
func modelPath(t *testing.T, name string) string {
	t.Helper()
	dir := os.Getenv("SWIZZLE_TEST_MODELS")
	if dir == "" {
		cache, err := os.UserCacheDir()
		if err != nil {
			t.Skip(err)
		}
		dir = filepath.Join(cache, "swizzle", "models")
	}
	path := filepath.Join(dir, name)
	if _, err := os.Stat(path); err != nil {
		if os.Getenv("CI") == "true" {
			t.Fatal(err)
		}
		t.Skipf("model is missing (.ci/models.sh fetches it): %v", err)
	}
	return path
}

// post sends a request, which must succeed, and returns the body of the answer.
func post(t *testing.T, url, body string) string {
	t.Helper()
	resp, err := http.Post(url, "application/json", strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	data, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode != http.StatusOK {
		t.Fatalf("%s: %s, %s, error %v", body, resp.Status, data, err)
	}
	return string(data)
}

// wholeText is the text of an answer, and streamedText that of a stream.
func wholeText(t *testing.T, body string) string {
	answer := decode[struct {
		Choices []struct {
			Text    string
			Message struct{ Content string }
		}
	}](t, body)
	return answer.Choices[0].Text + answer.Choices[0].Message.Content
}

func streamedText(t *testing.T, body string) string {
	text := ""
	for event := range strings.SplitSeq(body, "\n\n") {
		data, ok := strings.CutPrefix(event, "data: {")
		if !ok {
			continue
		}
		chunk := decode[struct {
			Choices []struct {
				Text  string
				Delta openai.ChatDelta
			}
		}](t, "{"+data)
		for _, c := range chunk.Choices {
			text += c.Text
			if c.Delta.Content != nil {
				text += *c.Delta.Content
			}
		}
	}
	return text
}

// TestServeIsRun checks that the server gives the text that the command line gives.
func TestServeIsRun(t *testing.T) {
	model := modelPath(t, smollm2)
	_, url := startServer(t, model)
	const question = "Name three rivers of Europe – «drei Flüsse»."
	quoted, err := json.Marshal(question)
	if err != nil {
		t.Fatal(err)
	}
	for _, sampling := range []struct{ flags, fields string }{
		{"--temp 0", `"temperature":0`},
		{"--seed 7", `"seed":7`},
		{"--seed 8 --temp 1.5 --top-k 100 --min-p 0 --repeat-penalty 1.2", `"seed":8,"temperature":1.5,"top_k":100,"min_p":0,"repeat_penalty":1.2`},
	} {
		for _, shape := range []struct{ path, flag, prompt string }{
			{"/v1/chat/completions", "", fmt.Sprintf(`"messages":[{"role":"user","content":%s}]`, quoted)},
			{"/v1/completions", "--raw", fmt.Sprintf(`"prompt":%s`, quoted)},
		} {
			args := append([]string{"run", "-m", model, "-n", "24", "-p", question, "--json"}, strings.Fields(sampling.flags+" "+shape.flag)...)
			want := decode[struct{ Text string }](t, ok(t, "", args...)).Text
			if want == "" {
				t.Errorf("%q gives no text", args)
			}
			request := fmt.Sprintf(`{%s,%s,"max_tokens":24`, shape.prompt, sampling.fields)
			if got := wholeText(t, post(t, url+shape.path, request+"}")); got != want {
				t.Errorf("%s %s: %q, run gives %q", shape.path, sampling.flags, got, want)
			}
			if got := streamedText(t, post(t, url+shape.path, request+`,"stream":true}`)); got != want {
				t.Errorf("%s %s, streamed: %q, run gives %q", shape.path, sampling.flags, got, want)
			}
		}
	}
}

// TestTooLongPrompt gives prompts that fit neither the context nor, before that, what a template may render.
func TestTooLongPrompt(t *testing.T) {
	model := modelPath(t, smollm2)
	args := []string{"run", "-m", model, "-c", "64"}
	for _, test := range []struct {
		prompt string
		want   string
	}{
		{strings.Repeat("word ", 100), "exceeds the context of 64; -c N makes it larger"},
		{strings.Repeat("word ", 4<<20), model + ": render chat template: chat_template:"},
	} {
		got := swizzle(t, test.prompt, args...)
		if got.status != statusFailure || got.stdout != "" {
			t.Errorf("status %d, stdout %q", got.status, got.stdout)
		}
		checkErrorLine(t, args, got.stderr, test.want)
	}

	// In a chat there is another way out.
	c := runCmd{modelFlags: modelFlags{Model: model}, Predict: 4, Context: 64, Sampling: samplingFlags{TopP: 1, RepeatPenalty: 1}}
	e, err := c.load(t.Context(), c.Context)
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	talk, err := newConversation(e, &c)
	if err != nil {
		t.Fatal(err)
	}
	defer talk.close()
	for i, want := range []string{"", "/clear forgets the conversation, -c N"} {
		_, err := talk.ask(t.Context(), strings.Repeat("word ", 1+60*i), func(string) error { return nil })
		if (err != nil) != (want != "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("message %d: error %v, want %q", i, err, want)
		}
	}
}

// TestEmptyPrompt gives nothing to a model that puts nothing in front of it.
func TestEmptyPrompt(t *testing.T) {
	args := []string{"run", "-m", modelPath(t, smollm2), "--raw", "-p", ""}
	got := swizzle(t, "", args...)
	if got.status != statusFailure || got.stdout != "" {
		t.Errorf("%+v", got)
	}
	checkErrorLine(t, args, got.stderr, "the prompt is empty")
}
