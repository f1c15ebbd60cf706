package main

import (
	"bufio"
	"fmt"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// openTerminal returns the two ends of a new terminal: what its user has, and what a program has.
func openTerminal(t *testing.T) (user, program *os.File) {
	t.Helper()
	user, err := os.OpenFile("/dev/ptmx", os.O_RDWR, 0)
	if err != nil {
		t.Skipf("no terminal: %v", err)
	}
	t.Cleanup(func() { user.Close() })
	fd := int(user.Fd())
	if err := unix.IoctlSetPointerInt(fd, unix.TIOCSPTLCK, 0); err != nil {
		t.Fatal(err)
	}
	n, err := unix.IoctlGetInt(fd, unix.TIOCGPTN)
	if err != nil {
		t.Fatal(err)
	}
	program, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", n), os.O_RDWR|syscall.O_NOCTTY, 0)
	if err != nil {
		t.Skipf("no terminal: %v", err)
	}
	t.Cleanup(func() { program.Close() })
	return user, program
}

// TestSignalAtPrompt ends the program while the user types. The terminal must be as it was.
func TestSignalAtPrompt(t *testing.T) {
	for _, signal := range []os.Signal{syscall.SIGTERM, syscall.SIGHUP} {
		user, program := openTerminal(t)
		before, err := unix.IoctlGetTermios(int(program.Fd()), unix.TCGETS)
		if err != nil {
			t.Fatal(err)
		}
		cmd := start(t, "run", "-m", testFile("model.gguf"))
		cmd.Env = append(cmd.Env, "TERM=xterm")
		cmd.Stdin, cmd.Stdout, cmd.Stderr = program, program, program
		cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		defer time.AfterFunc(10*time.Second, func() { // ends the reads below
			cmd.Process.Kill()
			program.Close()
		}).Stop()
		out := bufio.NewReader(user)
		shown := ""
		for !strings.HasSuffix(shown, chatPrompt) {
			r, _, err := out.ReadRune()
			if err != nil {
				t.Fatalf("%v after %q", err, shown)
			}
			shown += string(r)
		}
		if during, err := unix.IoctlGetTermios(int(program.Fd()), unix.TCGETS); err != nil || during.Lflag == before.Lflag {
			t.Errorf("%v: the terminal is not raw at the prompt; error %v", signal, err)
		}
		if err := cmd.Process.Signal(signal); err != nil {
			t.Fatal(err)
		}
		if cmd.Wait(); cmd.ProcessState.ExitCode() != statusInterrupted {
			t.Errorf("%v: %v", signal, cmd.ProcessState)
		}
		if after, err := unix.IoctlGetTermios(int(program.Fd()), unix.TCGETS); err != nil || *after != *before {
			t.Errorf("%v: the terminal is %+v, was %+v; error %v", signal, after, before, err)
		}
	}
}
