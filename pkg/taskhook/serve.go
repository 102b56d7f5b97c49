package taskhook

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"
)

// Serve listens on addr (":8080") and answers reviews at every path until ctx ends; then it finishes what is under
// way, for at most ten seconds. For TLS or other routes use [Handler] in a server of your own.
func Serve(ctx context.Context, addr string, p Plugin, o Options) error {
	var config net.ListenConfig
	listener, err := config.Listen(ctx, "tcp", addr)
	if err != nil {
		return fmt.Errorf("serve a task hook: %w", err)
	}
	return ServeListener(ctx, listener, p, o)
}

// ServeListener is Serve on a listener that is there already; it closes it.
func ServeListener(ctx context.Context, listener net.Listener, p Plugin, o Options) error {
	server := &http.Server{
		Handler:           Handler(p, o),
		ReadHeaderTimeout: 10 * time.Second,
		IdleTimeout:       2 * time.Minute,
		BaseContext:       func(net.Listener) context.Context { return context.WithoutCancel(ctx) },
	}
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(listener) }()
	select {
	case err := <-ended:
		return fmt.Errorf("serve a task hook: %w", err)
	case <-ctx.Done():
	}
	patience, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
	defer cancel()
	err := server.Shutdown(patience)
	if ended := <-ended; !errors.Is(ended, http.ErrServerClosed) {
		err = errors.Join(err, ended)
	}
	if err != nil {
		return fmt.Errorf("stop serving a task hook: %w", err)
	}
	return nil
}
