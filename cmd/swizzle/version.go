package main

import (
	"fmt"
	"runtime"
	"runtime/debug"
)

// numerics names the rules by which every kernel computes: the same name, the same bits.
const numerics = "canonical-1"

type versionCmd struct {
	JSON bool `name:"json" help:"Print JSON."`
}

// buildInfo says which build this is.
type buildInfo struct {
	Version  string `json:"version"`
	Commit   string `json:"commit"` // "" if unknown
	Modified bool   `json:"modified"`
	Go       string `json:"go"`
	Platform string `json:"platform"`
	Numerics string `json:"numerics"`
}

func readBuildInfo() buildInfo {
	b := buildInfo{Version: "unknown", Go: runtime.Version(), Platform: runtime.GOOS + "/" + runtime.GOARCH, Numerics: numerics}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return b
	}
	b.Version = info.Main.Version
	for _, s := range info.Settings {
		switch s.Key {
		case "vcs.revision":
			b.Commit = s.Value
		case "vcs.modified":
			b.Modified = s.Value == "true"
		}
	}
	return b
}

// Run prints the version.
func (c *versionCmd) Run() error {
	b := readBuildInfo()
	if c.JSON {
		return printJSON(b)
	}
	_, err := fmt.Printf("swizzle %s (%s, %s, numerics %s)\n", b.Version, b.Platform, b.Go, b.Numerics)
	return err
}
