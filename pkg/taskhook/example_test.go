package taskhook_test

import (
	"context"
	"fmt"
	"log"
	"net/http/httptest"

	"github.com/sluice-ml/sluice/pkg/taskhook"
	"github.com/sluice-ml/sluice/pkg/taskhook/hooktest"
)

type greeter struct{}

func (greeter) Pre(_ context.Context, r *taskhook.Request) (*taskhook.Response, error) {
	return taskhook.Run(map[string]any{"greeting": "hello " + r.Task.Name}), nil
}

func (greeter) Post(_ context.Context, r *taskhook.Request) (*taskhook.Response, error) {
	log.Printf("%s ended as %s", r.Task.Path, r.Result.Phase)
	return taskhook.Done(), nil
}

func Example() {
	log.SetOutput(discard{})
	server := httptest.NewServer(taskhook.Handler(greeter{}, taskhook.Options{}))
	defer server.Close()
	for _, finding := range hooktest.Run(context.Background(), server.URL, hooktest.Options{})[:3] {
		fmt.Println(finding.Level, finding.Text)
	}
	// Output:
	// ok Run: the task runs; gives the placeholders {{hooks.test.greeting}}
	// ok the same uid gets the same answer again
	// ok Done: the result stands, and what depends on it may start
}

type discard struct{}

func (discard) Write(p []byte) (int, error) { return len(p), nil }
