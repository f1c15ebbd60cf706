package main

import (
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/swizzle-rt/swizzle/runtime/device/cpu"
	"github.com/swizzle-rt/swizzle/runtime/sample"
)

// TestSamplingDefaults checks that the flags' defaults are the sampler's own.
func TestSamplingDefaults(t *testing.T) {
	var c cli
	if _, err := newParser(&c, func(int) {}).Parse([]string{"run", "-m", "x", "--seed", "0"}); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(sample.Default(), c.Run.Sampling.params()); diff != "" {
		t.Errorf("params (-want +got):\n%s", diff)
	}
}

func TestSeed(t *testing.T) {
	for _, test := range []struct {
		flag string
		want uint32
	}{{"7", 7}, {"4294967295", 1<<32 - 1}, {"4294967297", 1}, {"-2", 1<<32 - 2}} {
		var c cli
		if _, err := newParser(&c, func(int) {}).Parse([]string{"run", "--seed", test.flag}); err != nil {
			t.Fatal(err)
		}
		if got := c.Run.Sampling.params().Seed; got != test.want {
			t.Errorf("--seed %s gives %d, want %d", test.flag, got, test.want)
		}
	}
	drawn := samplingFlags{Seed: -1}
	seeds := map[uint32]bool{}
	for range 8 {
		seeds[drawn.params().Seed] = true
	}
	if len(seeds) == 1 {
		t.Error("without a seed, 8 requests have the same")
	}
}

func TestChangeSampling(t *testing.T) {
	s := samplingFlags{Temp: 0.8, TopP: 1, RepeatPenalty: 1}
	before := s
	for _, test := range []struct{ name, value, want string }{
		{"temp", "hot", `temp: "hot", expected a number such as 0.8`},
		{"temp", "-1", "temperature is -1"},
		{"top-k", "1.5", `top-k: "1.5"`},
	} {
		err := s.change(test.name, test.value)
		if err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("change(%q, %q): error %v, want %q", test.name, test.value, err, test.want)
		}
		if s != before {
			t.Errorf("change(%q, %q) failed, but changed %+v to %+v", test.name, test.value, before, s)
		}
	}
	if err := s.change("temp", "0.25"); err != nil || s.Temp != 0.25 {
		t.Errorf("temp is %v, error %v", s.Temp, err)
	}
	if err := s.change("seed", "-1"); err != nil || s.Seed != -1 {
		t.Errorf("seed is %v, error %v", s.Seed, err)
	}
}

// TestSet changes settings of a chat.
func TestSet(t *testing.T) {
	c := conversation{sampling: samplingFlags{Temp: 0.8, TopP: 1, RepeatPenalty: 1}, predict: 5}
	for _, test := range []struct{ text, want string }{
		{"foo", `no setting "foo", expected one of frequency-penalty, min-p, predict, presence-penalty, repeat-last-n, repeat-penalty, seed, temp, top-k, top-p, system`},
		{"heat 1", `no setting "heat", expected`},
		{"predict -2", `predict: "-2", expected`},
		{"temp hot", `temp: "hot", expected`},
	} {
		if err := c.set(test.text); err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("/set %s: error %v, want %q", test.text, err, test.want)
		}
	}
	for _, text := range []string{"predict 7", "temp 0.25", `system "Be brief."`} {
		if err := c.set(text); err != nil {
			t.Errorf("/set %s: %v", text, err)
		}
	}
	if c.predict != 7 || c.sampling.Temp != 0.25 || c.system != "Be brief." {
		t.Errorf("settings %+v", c)
	}
}

func TestPrompt(t *testing.T) {
	given := "-p\n"
	for _, test := range []struct {
		flag *string
		in   string
		want string
	}{
		{nil, "text", "text"},
		{nil, "text\n", "text"},
		{nil, "text\r\n", "text"},
		{nil, "text\n\n", "text\n"},
		{nil, " two\nlines ", " two\nlines "},
		{nil, "\xEF\xBB\xBFmark", "mark"},
		{nil, "\xFF\xFEa\x00\xE4\x00\n\x00", "aä"},
		{nil, "\xFE\xFF\x00a\xD8\x3D\xDE\x00", "a😀"},
		{nil, "\xFF\xFEa\x00\x00", "a"},         // half a code unit at the end
		{nil, "bad \xFF byte", "bad \xFF byte"}, // the tokenizer keeps every byte
		{&given, "ignored", "-p\n"},
	} {
		c := runCmd{Prompt: test.flag}
		got, err := c.prompt(t.Context(), strings.NewReader(test.in))
		if err != nil || got != test.want {
			t.Errorf("%q: %q, error %v; want %q", test.in, got, err, test.want)
		}
	}
}

// endless is a reader of text without end.
type endless struct{}

func (endless) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = 'a'
	}
	return len(p), nil
}

func TestInputIsBounded(t *testing.T) {
	if _, err := readInput(t.Context(), endless{}, "text"); err == nil || err.Error() != "read the text: more than 64.0 MiB" {
		t.Errorf("error %v", err)
	}
}

// script is a lineReader of given lines. A line of one Ctrl-C is an interrupt.
type script struct {
	lines   []string
	prompts []string
}

func (s *script) readLine(prompt string) (string, error) {
	s.prompts = append(s.prompts, prompt)
	if len(s.lines) == 0 {
		return "", io.EOF
	}
	line := s.lines[0]
	s.lines = s.lines[1:]
	if line == "\x03" {
		return "", errInterrupt
	}
	return line, nil
}

func TestReadMessage(t *testing.T) {
	for _, test := range []struct {
		lines []string
		want  string
		quote bool
		err   error
	}{
		{[]string{"one"}, "one", false, nil},
		{[]string{""}, "", false, nil},
		{[]string{"/bye"}, "/bye", false, nil},
		{[]string{`"""/bye"""`}, "/bye", true, nil},
		{[]string{`"""`, "/bye", `"""`}, "/bye", true, nil},
		{[]string{`"""one"""`}, "one", true, nil},
		{[]string{`"""`, "one", "", " two", `"""`}, "one\n\n two", true, nil},
		{[]string{`  """one`, `two"""  `}, "one\ntwo", true, nil},
		{[]string{"say \"\"\""}, `say """`, false, nil},
		{[]string{`"""`, "one"}, "", true, io.EOF},
		{[]string{`"""`, "\x03"}, "", true, errInterrupt},
		{nil, "", false, io.EOF},
	} {
		s := &script{lines: test.lines}
		got, quoted, err := readMessage(s)
		if got != test.want || quoted != test.quote || err != test.err {
			t.Errorf("%q: %q, quoted %v, error %v; want %q, %v, %v", test.lines, got, quoted, err, test.want, test.quote, test.err)
		}
		if s.prompts[0] != chatPrompt || len(s.prompts) > 1 && s.prompts[1] != moreLines {
			t.Errorf("%q: prompts %q", test.lines, s.prompts)
		}
	}
}

// TestRun runs a tiny model of the llama architecture, which answers nonsense, in every way that must give the same.
func TestRun(t *testing.T) {
	model := testFile("model.gguf")
	for _, sampling := range [][]string{{"--temp", "0"}, {"--temp", "1.5", "--seed", "3"}} {
		args := append([]string{"run", "-m", model, "-n", "12"}, sampling...)
		want := ok(t, "ignored", append(args, "-p", "ab")...)
		if !strings.HasSuffix(want, "\n") || strings.ContainsAny(want, "\x1b\r") {
			t.Errorf("%q gives %q", args, want)
		}
		for _, more := range [][]string{{"-t", "1"}, {"-t", "2"}, {"-t", "3"}, {"--raw"}, {"-c", "64"}} {
			if got := ok(t, "ab\n", append(args, more...)...); got != want {
				t.Errorf("%q: %q, want %q", more, got, want)
			}
		}
		for _, isa := range cpu.Detect().Available() {
			if got := swizzleEnv(t, []string{"SWIZZLE_ISA=" + string(isa)}, "ab", args...); got.stdout != want {
				t.Errorf("%s: %q, want %q", isa, got.stdout, want)
			}
		}
		got := decode[struct {
			Text   string
			Finish string
			New    int `json:"new_tokens"`
			Prompt int `json:"prompt_tokens"`
		}](t, ok(t, "", append(args, "-p", "ab", "--json")...))
		if strings.TrimSuffix(got.Text, "\n") != strings.TrimSuffix(want, "\n") || got.New > 12 || got.Prompt == 0 || got.Finish != "length" && got.Finish != "stop" {
			t.Errorf("--json: %+v, want the text %q", got, want)
		}
	}
}

// TestRunNames gives the model names that shells and file systems find hard.
func TestRunNames(t *testing.T) {
	data, err := os.ReadFile(testFile("model.gguf"))
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "mödel 模型 %s $x.gguf")
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
	ok(t, "", "run", "-m", path, "-p", "ab", "-n", "1", "--temp", "0")
}

func TestRunStats(t *testing.T) {
	got := swizzle(t, "", "run", "-m", testFile("model.gguf"), "-p", "ab", "-n", "2", "--seed", "5", "--stats")
	if got.status != 0 || !strings.Contains(got.stderr, "tok/s") || !strings.Contains(got.stderr, "seed 5") || strings.Contains(got.stdout, "tok/s") {
		t.Errorf("%+v", got)
	}
}

func TestRunContextFull(t *testing.T) {
	args := []string{"run", "-m", testFile("model.gguf"), "-c", "8", "--temp", "0", "-p"}
	got := swizzle(t, "", append(args, "ab")...)
	if got.status != 0 || got.stdout == "" || !strings.Contains(got.stderr, "context of 8 tokens is full") {
		t.Errorf("%+v", got)
	}
	got = swizzle(t, "", append(args, strings.Repeat("ab ", 20))...)
	if got.status != statusFailure {
		t.Errorf("%+v", got)
	}
	checkErrorLine(t, args, got.stderr, "exceeds the context of 8; -c N makes it larger")
}
