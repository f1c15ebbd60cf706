package ir

import (
	"fmt"
	"path"
	"runtime"
	"strings"
)

// Pos is the place in an op's source where a statement was built.
type Pos struct {
	File string // base name
	Line int
}

func (p Pos) String() string {
	if p.File == "" {
		return "-"
	}
	return fmt.Sprintf("%s:%d", p.File, p.Line)
}

// Error is an illegal kernel: which, where in its source, which statement, why.
type Error struct {
	Kernel string
	Pos    Pos
	Stmt   string // the statement as text, or empty
	Msg    string
}

func (e *Error) Error() string {
	var s strings.Builder
	fmt.Fprintf(&s, "kernel %s: ", e.Kernel)
	if e.Pos.File != "" {
		fmt.Fprintf(&s, "%s: ", e.Pos)
	}
	s.WriteString(e.Msg)
	if e.Stmt != "" {
		fmt.Fprintf(&s, " in %q", e.Stmt)
	}
	return s.String()
}

// callerPos returns the nearest caller outside the builder and the packages of macros over it.
func callerPos() Pos {
	var pcs [32]uintptr
	frames := runtime.CallersFrames(pcs[:runtime.Callers(1, pcs[:])])
	self, _ := frames.Next()
	dir := path.Dir(self.File)
	for {
		f, more := frames.Next()
		if !inBuilder(dir, f.File) {
			return Pos{path.Base(f.File), f.Line}
		}
		if !more {
			return Pos{}
		}
	}
}

// inBuilder goes by the file, not by the function: a closure that is inlined is named after its caller.
func inBuilder(ir, file string) bool {
	if strings.HasSuffix(file, "_test.go") {
		return false
	}
	dir := path.Dir(file)
	return dir == ir || dir == ir+"/mathx" || dir == ir+"/tile"
}
