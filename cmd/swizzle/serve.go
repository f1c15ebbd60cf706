package main

import (
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strconv"

	"github.com/swizzle-rt/swizzle/serve"
)

type serveCmd struct {
	modelFlags
	Context int    `short:"c" placeholder:"N" help:"Context in tokens. Default: the model's, at most 8192."`
	Host    string `default:"127.0.0.1" placeholder:"ADDR" help:"Address to listen on. Default: ${default}, this machine alone."`
	Port    int    `default:"8080" placeholder:"N" help:"Port to listen on; 0 chooses one. Default: ${default}."`
	Alias   string `placeholder:"NAME" help:"Name of the model in replies. Default: that of the file."`
}

// Help gives the examples of --help.
func (*serveCmd) Help() string {
	return `Examples:

    swizzle serve -m model.gguf
    curl http://127.0.0.1:8080/v1/chat/completions -d '{"messages": [{"role": "user", "content": "Hello"}]}'

SIGINT and SIGTERM end it in order.`
}

// Run serves until a signal ends it.
func (c *serveCmd) Run() error {
	if err := c.check(); err != nil {
		return err
	}
	if c.Port < 0 || c.Port > 65535 {
		return usagef("--port is %d, expected 0 to 65535", c.Port)
	}
	ctx, stop := interruptible()
	defer stop()
	e, err := c.load(ctx, c.Context)
	if err != nil {
		return err
	}
	defer e.Close()
	name := c.Alias
	if name == "" {
		name = filepath.Base(c.Model)
	}
	server := serve.New(e, serve.Options{Model: name, Logger: slog.New(slog.NewTextHandler(os.Stderr, nil))})
	return server.ListenAndServe(ctx, net.JoinHostPort(c.Host, strconv.Itoa(c.Port)))
}
