package main

import (
	"bufio"
	"io"
	"net/http"
	"os"
	"os/exec"
	"regexp"
	"runtime"
	"syscall"
	"testing"
)

// start starts the program. It is killed at the end of the test, if it still runs.
func start(t *testing.T, args ...string) *exec.Cmd {
	t.Helper()
	if runtime.GOOS == "windows" {
		t.Skip("a process can't be sent signals on Windows")
	}
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), exe, args...)
	cmd.Env = append(os.Environ(), "SWIZZLE_TEST_PROGRAM=1")
	return cmd
}

// TestInterrupt interrupts an answer that would be long.
func TestInterrupt(t *testing.T) {
	for _, signal := range []os.Signal{os.Interrupt, syscall.SIGTERM} {
		cmd := start(t, "run", "-m", testFile("model-context-huge.gguf"), "-p", "ab", "--temp", "0", "-c", "8192")
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		r := bufio.NewReader(out)
		if _, err := r.ReadByte(); err != nil {
			t.Fatal(err)
		}
		if err := cmd.Process.Signal(signal); err != nil {
			t.Fatal(err)
		}
		n, _ := r.WriteTo(io.Discard)
		if cmd.Wait(); cmd.ProcessState.ExitCode() != statusInterrupted || n > 8000 {
			t.Errorf("%v: %v after %d bytes more", signal, cmd.ProcessState, n)
		}
	}
}

// TestServe starts the server, asks for its health and ends it.
func TestServe(t *testing.T) {
	cmd := start(t, "serve", "-m", testFile("model.gguf"), "--port", "0")
	log, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	url := ""
	lines := bufio.NewScanner(log)
	for url == "" && lines.Scan() {
		url = regexp.MustCompile(`http://127\.0\.0\.1:\d+`).FindString(lines.Text())
	}
	if url == "" {
		t.Fatal("the server doesn't say where it listens")
	}
	resp, err := http.Get(url + "/health")
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		t.Errorf("/health: %s", resp.Status)
	}
	if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	for lines.Scan() {
	}
	if err := cmd.Wait(); err != nil {
		t.Errorf("after SIGTERM: %v", err)
	}
}
