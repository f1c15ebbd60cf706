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

// TestInterruptPrompt interrupts the program while it reads a prompt from a pipe that says no more.
func TestInterruptPrompt(t *testing.T) {
	for _, signal := range []os.Signal{os.Interrupt, syscall.SIGTERM} {
		cmd := start(t, "run", "-m", testFile("model.gguf"))
		in, err := cmd.StdinPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		// More than a pipe holds: the program reads.
		if _, err := in.Write(make([]byte, 1<<20)); err != nil {
			t.Fatal(err)
		}
		if err := cmd.Process.Signal(signal); err != nil {
			t.Fatal(err)
		}
		if cmd.Wait(); cmd.ProcessState.ExitCode() != statusInterrupted {
			t.Errorf("%v: %v", signal, cmd.ProcessState)
		}
	}
}

// startServer starts the program as a server and returns it and its URL. It is killed at the end of the test.
func startServer(t *testing.T, model string) (*exec.Cmd, string) {
	t.Helper()
	cmd := start(t, "serve", "-m", model, "--port", "0")
	log, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		cmd.Process.Kill()
		cmd.Wait()
	})
	lines := bufio.NewScanner(log)
	for lines.Scan() {
		if url := regexp.MustCompile(`http://127\.0\.0\.1:\d+`).FindString(lines.Text()); url != "" {
			go io.Copy(io.Discard, log)
			return cmd, url
		}
	}
	t.Fatal("the server doesn't say where it listens")
	return nil, ""
}

// TestServe starts the server, asks for its health and ends it.
func TestServe(t *testing.T) {
	cmd, url := startServer(t, testFile("model.gguf"))
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
	if err := cmd.Wait(); err != nil {
		t.Errorf("after SIGTERM: %v", err)
	}
}
