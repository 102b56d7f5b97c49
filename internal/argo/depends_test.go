package argo

import (
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/sluice-ml/sluice/internal/program"
)

// String writes a tree with all its parentheses, for comparisons.
func (t *dependsTree) String() string {
	switch t.op {
	case program.Is:
		if t.result == "" {
			return t.task
		}
		return t.task + "." + string(t.result)
	case program.Not:
		return "!" + t.args[0].String()
	}
	sign := " && "
	if t.op == program.Or {
		sign = " || "
	}
	parts := make([]string, len(t.args))
	for i, a := range t.args {
		parts[i] = a.String()
	}
	return "(" + strings.Join(parts, sign) + ")"
}

func TestParseDepends(t *testing.T) {
	for src, want := range map[string]string{
		"a":                                     "a",
		" my-task-1.Succeeded ":                 "my-task-1.Succeeded",
		"a && b || c":                           "((a && b) || c)",
		"a||b&&c":                               "(a || (b && c))",
		"(a || b) && !c.Failed":                 "((a || b) && !c.Failed)",
		"!(a.AllFailed && !b)":                  "!(a.AllFailed && !b)",
		"a.Omitted || a.Daemoned\n|| a.Skipped": "(a.Omitted || a.Daemoned || a.Skipped)",
		"a.Errored||b_2.AnySucceeded":           "(a.Errored || b_2.AnySucceeded)",
	} {
		tree, err := parseDepends(src)
		if err != nil {
			t.Errorf("%q: %v", src, err)
			continue
		}
		if got := tree.String(); got != want {
			t.Errorf("%q is %s, want %s", src, got, want)
		}
	}
	for src, want := range map[string]string{
		"":                             "at character 1: a task's name is missing at the end",
		"a &&":                         "at character 5: a task's name is missing at the end",
		"a & b":                        `at character 3: "& b" does not belong here; join tasks with && or ||`,
		"(a || b":                      "at character 8: a ) is missing",
		"a b":                          `at character 3: "b" does not belong here`,
		"a.Done":                       `at character 7: "Done" is no result of a task; use Succeeded`,
		"a.":                           `"" is no result of a task`,
		"&& a":                         `at character 1: expected a task's name, found "&& a"`,
		strings.Repeat("(", 500) + "a": "nested more than 100 levels deep",
		strings.Repeat("!", 500) + "a": "nested more than 100 levels deep",
	} {
		if _, err := parseDepends(src); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.20q: %v, want something with %q", src, err, want)
		}
	}
}

// TestDependsMeansWhatItSays writes random trees as text, as loosely as precedence allows, and reads them again.
func TestDependsMeansWhatItSays(t *testing.T) {
	results := []program.Result{"", program.Succeeded, program.Failed, program.Errored, program.Skipped, program.Omitted, program.Daemoned, program.AnySucceeded, program.AllFailed}
	var tree func(depth int) *rapid.Generator[*dependsTree]
	tree = func(depth int) *rapid.Generator[*dependsTree] {
		return rapid.Custom(func(t *rapid.T) *dependsTree {
			kind := rapid.IntRange(0, 5).Draw(t, "kind")
			if depth == 0 || kind > 2 {
				return &dependsTree{op: program.Is, task: fmt.Sprintf("task-%d", rapid.IntRange(0, 4).Draw(t, "task")), result: rapid.SampledFrom(results).Draw(t, "result")}
			}
			if kind == 2 {
				return &dependsTree{op: program.Not, args: []*dependsTree{tree(depth-1).Draw(t, "arg")}}
			}
			op := program.And
			if kind == 1 {
				op = program.Or
			}
			return &dependsTree{op: op, args: rapid.SliceOfN(tree(depth-1), 2, 4).Draw(t, "args")}
		})
	}
	rapid.Check(t, func(t *rapid.T) {
		want := tree(4).Draw(t, "tree")
		got, err := parseDepends(loose(want, 0))
		if err != nil {
			t.Fatal(err)
		}
		for world := range 64 {
			is := func(task string, r program.Result) bool {
				return (len(task)*31+int(task[len(task)-1])*17+len(r)*7+world)*2654435761>>16&1 == 1
			}
			if a, b := holds(want, is), holds(got, is); a != b {
				t.Fatalf("%s means something else than %s", loose(want, 0), got)
			}
		}
	})
}

// loose writes a tree with parentheses only where an operator of less strength stands inside a stronger one.
func loose(t *dependsTree, strength int) string {
	sign, own := " || ", 1
	switch t.op {
	case program.Is:
		return t.String()
	case program.Not:
		return "!" + loose(t.args[0], 3)
	case program.And:
		sign, own = "&&", 2
	}
	parts := make([]string, len(t.args))
	for i, a := range t.args {
		parts[i] = loose(a, own)
	}
	text := strings.Join(parts, sign)
	if own < strength {
		text = "(" + text + ")"
	}
	return text
}

func holds(t *dependsTree, is func(string, program.Result) bool) bool {
	switch t.op {
	case program.Not:
		return !holds(t.args[0], is)
	case program.And:
		for _, a := range t.args {
			if !holds(a, is) {
				return false
			}
		}
		return true
	case program.Or:
		for _, a := range t.args {
			if holds(a, is) {
				return true
			}
		}
		return false
	}
	return is(t.task, t.result)
}

func FuzzDepends(f *testing.F) {
	for _, s := range []string{"a", "a && !b.Failed", "(a||b)&&c.AnySucceeded", "!!(a)", "a.X", "((", "é"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, src string) {
		tree, err := parseDepends(src)
		if err != nil {
			return
		}
		again, err := parseDepends(tree.String())
		if err != nil || again.String() != tree.String() {
			t.Errorf("%q is read as %s, and that as %v (%v)", src, tree, again, err)
		}
	})
}

func TestCycles(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 12).Draw(t, "n")
		needs := make([][]int, n)
		for i := range needs {
			needs[i] = rapid.SliceOfN(rapid.IntRange(0, n-1), 0, 3).Draw(t, "needs")
		}
		// The plain definition: what can be reached from each node.
		reach := make([][]bool, n)
		for i := range reach {
			reach[i] = make([]bool, n)
			for stack := []int{i}; len(stack) > 0; {
				at := stack[len(stack)-1]
				stack = stack[:len(stack)-1]
				for _, m := range needs[at] {
					if !reach[i][m] {
						reach[i][m] = true
						stack = append(stack, m)
					}
				}
			}
		}
		cyclic := false
		for i := range reach {
			cyclic = cyclic || reach[i][i]
		}
		cycle := findCycle(needs)
		if (cycle != nil) != cyclic {
			t.Fatalf("cycle %v in %v", cycle, needs)
		}
		if cyclic {
			return
		}
		r := newReachability(needs)
		for i := range n {
			for j := range n {
				if r.needed(i, j) != reach[i][j] {
					t.Fatalf("whether %d needs %d in %v is answered wrongly", i, j, needs)
				}
			}
		}
	})
}
