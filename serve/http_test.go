package serve

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"github.com/swizzle-rt/swizzle/runtime/engine"
	"github.com/swizzle-rt/swizzle/runtime/template"
	"github.com/swizzle-rt/swizzle/serve/openai"
)

func TestRefused(t *testing.T) {
	url := start(t, newTestServer(t, func(context.Context, engine.Request, func(engine.Token) error) (engine.Result, error) {
		t.Error("a refused request ran")
		return engine.Result{}, nil
	}))
	long := strings.Repeat("x", 101)
	for _, tt := range []struct {
		method, path, body string
		status             int
		code               any
		text               string
	}{
		{"POST", chatPath, "{", 400, nil, "not valid JSON"},
		{"POST", chatPath, "", 400, nil, "no body"},
		{"POST", chatPath, `{"messages":[]}`, 400, nil, "messages"},
		{"POST", chatPath, `{"messages":[{"role":"user","content":"raise"}]}`, 400, nil, "roles must alternate"},
		{"POST", chatPath, `{"messages":[{"role":"user","content":"` + long + `"}]}`, 400, "context_length_exceeded", "105 tokens, which exceeds the available context size of 100"},
		{"POST", chatPath, `{"messages":[{"role":"user","content":[{"type":"input_audio"}]}]}`, 400, "unsupported_parameter", "messages[0].content"},
		{"POST", chatPath, `{"messages":[{"role":"user","content":"x"}],"temperature":-1}`, 400, nil, "temperature is -1"},
		{"POST", chatPath, `{"messages":[{"role":"user","content":"x"}],"top_p":1.5,"stream":true}`, 400, nil, "top-p is 1.5"},
		{"POST", completionPath, `{"prompt":"` + long + `"}`, 400, "context_length_exceeded", "101 tokens"},
		{"POST", completionPath, `{"prompt":[0` + strings.Repeat(",0", 100) + `]}`, 400, "context_length_exceeded", "101 tokens"},
		{"POST", completionPath, `{"prompt":""}`, 400, nil, "empty"},
		{"POST", completionPath, `{"prompt":[]}`, 400, nil, "empty"},
		{"POST", completionPath, `{"prompt":[0,5]}`, 400, nil, "token 1 is 5, want 0 to 4"},
		{"POST", completionPath, `{"prompt":[-1]}`, 400, nil, "token 0 is -1"},
		{"POST", completionPath, `{"prompt":"` + strings.Repeat("x", maxBody) + `"}`, 413, nil, "larger than"},
		{"GET", "/v1/models/other", "", 404, "model_not_found", `no model "other"`},
		{"GET", "/v1/models/", "", 404, "model_not_found", ""},
		{"GET", "/", "", 404, "unknown_url", `"/"`},
		{"POST", "/v1/embeddings", "{}", 404, "unknown_url", `"/v1/embeddings"`},
		{"GET", "/v1/" + long, "", 404, "unknown_url", ""},
		{"GET", chatPath, "", 405, nil, "want POST"},
		{"DELETE", "/v1/models/org/test", "", 405, nil, "want GET"},
		{"POST", "/health", "", 405, nil, "want GET"},
		{"OPTIONS", "/health", "", 405, nil, "want GET"},
	} {
		a := do(t, tt.method, url+tt.path, tt.body)
		name := tt.method + " " + tt.path + " " + tt.body
		t.Run(name[:min(len(name), 60)], func(t *testing.T) {
			wantError(t, a, tt.status, tt.code, tt.text)
			if allow := a.header.Get("Allow"); (allow != "") != (tt.status == 405) {
				t.Errorf("got Allow %q", allow)
			}
		})
	}
}

// TestTooLong checks that no text is tokenized that is too long for any tokens: of 7 bytes, the longest, 100 fit.
func TestTooLong(t *testing.T) {
	s := newTestServer(t, hello)
	tokenized := 0
	text, prompt := s.model.text, s.model.prompt
	s.model.text = func(t string) []int32 {
		tokenized++
		return text(t)
	}
	s.model.prompt = func(m []template.Message, o template.Options) ([]int32, error) {
		tokenized++
		return prompt(m, o)
	}
	url := start(t, s)
	x := func(n int) string { return strings.Repeat("x", n) }
	for _, tt := range []struct {
		path, body, text string
		tokenized        int
	}{
		{completionPath, `{"prompt":"` + x(700) + `"}`, "700 tokens", 1},
		{completionPath, `{"prompt":"` + x(701) + `"}`, "701 bytes", 0},
		{completionPath, `{"prompt":"` + x(701) + `","stream":true}`, "701 bytes", 0},
		{completionPath, `{"prompt":"` + x(31<<20) + `"}`, "32505856 bytes", 0},
		{chatPath, `{"messages":[{"role":"user","content":"` + x(696) + `"}]}`, "700 tokens", 1},
		{chatPath, `{"messages":[{"role":"user","content":"` + x(697) + `"}]}`, "701 bytes", 0},
		{chatPath, `{"messages":[{"role":"user","content":"` + x(350) + `"},{"role":"user","content":"` + x(350) + `"}]}`, "708 bytes", 0},
		{chatPath, `{"messages":[{"role":"user","content":"","name":"` + x(700) + `"}]}`, "706 bytes", 0},
		{chatPath, `{"messages":[{"role":"user","content":""}` + strings.Repeat(`,{"role":"user","content":""}`, 100) + `]}`, "101 messages", 0},
	} {
		tokenized = 0
		wantError(t, do(t, "POST", url+tt.path, tt.body), 400, "context_length_exceeded", tt.text+", which exceeds")
		if tokenized != tt.tokenized {
			t.Errorf("%.60s, %s: tokenized %d texts", tt.body, tt.text, tokenized)
		}
	}
}

func TestHealthAndModels(t *testing.T) {
	url := start(t, newTestServer(t, nil))
	for _, path := range []string{"/health", "/v1/health"} {
		if a := do(t, "GET", url+path, ""); a.status != 200 || a.body != "{\"status\":\"ok\"}\n" {
			t.Errorf("%s: got %v", path, a)
		}
	}
	if a := do(t, "HEAD", url+"/health", ""); a.status != 200 {
		t.Errorf("HEAD: got %v", a)
	}
	for _, path := range []string{"/v1/models", "/models"} {
		var list openai.ModelList
		if err := json.Unmarshal([]byte(do(t, "GET", url+path, "").body), &list); err != nil {
			t.Fatal(err)
		}
		if len(list.Data) != 1 || list.Object != "list" || list.Data[0].ID != "org/test" || list.Data[0].Object != "model" || list.Data[0].Created == 0 {
			t.Errorf("%s: got %+v", path, list)
		}
	}
	var m openai.Model
	if err := json.Unmarshal([]byte(do(t, "GET", url+"/v1/models/org/test", "").body), &m); err != nil || m.ID != "org/test" {
		t.Errorf("got %+v, %v", m, err)
	}
}

func TestPanicOutsideGeneration(t *testing.T) {
	s := newTestServer(t, nil)
	s.model.text = func(string) []int32 { panic("secret") }
	a := do(t, "POST", start(t, s)+completionPath, `{"prompt":"a"}`)
	wantError(t, a, 500, nil, "internal error")
}

func TestOrigins(t *testing.T) {
	url := start(t, newTestServer(t, hello))
	for _, tt := range []struct {
		origin string
		allow  bool
	}{
		{"http://localhost", true},
		{"http://localhost:3000", true},
		{"https://127.0.0.1:5173", true},
		{"http://[::1]:80", true},
		{"http://chat.test", true}, // the server's own name
		{"http://evil.test", false},
		{"http://localhost.evil.test", false},
		{"http://chat.test.evil.test", false},
		{"null", false},
		{"file://", false},
		{"http://%zz", false},
	} {
		for _, method := range []string{"GET", "OPTIONS"} {
			header := []string{"Origin", tt.origin, "Host", "chat.test"}
			want := 200
			if method == "OPTIONS" {
				header = append(header, "Access-Control-Request-Method", "POST", "Access-Control-Request-Headers", "content-type")
				want = 204
			}
			a := do(t, method, url+"/v1/models", "", header...)
			if !tt.allow {
				wantError(t, a, 403, nil, "may not use")
				if a.header.Get("Access-Control-Allow-Origin") != "" {
					t.Errorf("%s: allowed", tt.origin)
				}
				continue
			}
			if a.status != want || a.header.Get("Access-Control-Allow-Origin") != tt.origin || a.header.Get("Vary") != "Origin" {
				t.Errorf("%s %s: got %v", method, tt.origin, a)
			}
			if method == "OPTIONS" && a.header.Get("Access-Control-Allow-Headers") != "content-type" {
				t.Errorf("%s: got %v", tt.origin, a.header)
			}
		}
	}
}

func TestIsLocal(t *testing.T) {
	for host, want := range map[string]bool{
		"localhost": true, "LocalHost:80": true, "127.0.0.1": true, "127.0.0.1:8080": true, "127.1.2.3:1": true, "[::1]:80": true,
		"[::1]": true, "::1": true,
		"": false, "evil.test": false, "evil.test:80": false, "localhost.evil.test": false, "127.0.0.1.evil.test": false,
		"0.0.0.0": false, "10.0.0.1:80": false, "[::1": true, "localhost@evil.test": false, "127.0.0.1:80:80": false,
	} {
		if got := isLocal(host); got != want {
			t.Errorf("%q: got %v", host, got)
		}
	}
}

func TestHostHeader(t *testing.T) {
	r := listen(t, newTestServer(t, hello))
	wantError(t, do(t, "GET", r.url+"/health", "", "Host", "evil.test"), 403, nil, `"evil.test"`)
	for _, host := range []string{"localhost:1", "127.0.0.1"} {
		if a := do(t, "GET", r.url+"/health", "", "Host", host); a.status != 200 {
			t.Errorf("%s: got %v", host, a)
		}
	}
	r.stop()
	r.ended(t)
}
