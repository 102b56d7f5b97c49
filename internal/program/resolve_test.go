package program

import (
	"strings"
	"testing"
)

func TestResolveJSONResolvesKeysToo(t *testing.T) {
	text := func(s string) (string, error) { return strings.ReplaceAll(s, "{{x}}", "gpu"), nil }
	got, err := ResolveJSON(JSON(`{"limits":{"{{x}}":"1","cpu":2},"list":[{"a{{x}}":"{{x}}"}]}`), text)
	if want := `{"limits":{"cpu":2,"gpu":"1"},"list":[{"agpu":"gpu"}]}`; err != nil || string(got) != want {
		t.Errorf("%s %v, want %s", got, err, want)
	}
}
