package argocheck

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
)

// Compare gives every difference between an expected run and an actual one, a line each, in the order of node names.
// No difference at all means that the run passes.
func Compare(want *Expected, got *Actual) []string {
	d := &differences{workflow: got.Name, machine: map[string]string{}}
	d.lines = append(d.lines, got.Problems...)
	if want.Random {
		d.lines = append(d.lines, consistent(want, got)...)
		return d.lines
	}
	if want.Result != got.Phase {
		d.add("workflow", "phase", want.Result, withMessage(got.Phase, got.Message))
	}
	if want.Invalid() {
		if len(got.Nodes) > 0 {
			d.add("workflow", "nodes", "none", fmt.Sprint(len(got.Nodes)))
		}
		return d.lines
	}
	if !want.Volatile {
		d.class("workflow", want.Message, got.Message)
		d.outputs("workflow", want.Outputs, got.Outputs)
	}
	d.nodes(want, got)
	return d.lines
}

type differences struct {
	workflow string
	// machine binds values that describe the machine that upstream ran on to what this one has instead.
	machine map[string]string
	lines   []string
}

func (d *differences) add(where, what, want, got string) {
	d.lines = append(d.lines, fmt.Sprintf("%s: %s: want %s, got %s", where, what, want, got))
}

// nodes matches nodes by name.
func (d *differences) nodes(want *Expected, got *Actual) {
	wanted, seen := byName(want.Nodes), byName(got.Nodes)
	all := map[string]bool{}
	for name := range wanted {
		all[name] = true
	}
	for name := range seen {
		all[name] = true
	}
	for _, name := range slices.Sorted(maps.Keys(all)) {
		w, expected := wanted[name]
		g, there := seen[name]
		switch {
		case !there:
			d.lines = append(d.lines, fmt.Sprintf("%s: missing (want %s %s)", name, w.Type, w.Phase))
		case !expected:
			d.lines = append(d.lines, fmt.Sprintf("%s: not expected (got %s %s)", name, g.Type, withMessage(g.Phase, g.Message)))
		default:
			d.node(name, w, g, want.Volatile)
		}
	}
}

func (d *differences) node(name string, want, got Node, volatile bool) {
	if want.Type != got.Type {
		d.add(name, "type", want.Type, got.Type)
	}
	if want.Phase != got.Phase {
		d.add(name, "phase", want.Phase, withMessage(got.Phase, got.Message))
	}
	if volatile {
		return
	}
	if w, g := set(want.Children), set(got.Children); !slices.Equal(w, g) {
		d.add(name, "children", fmt.Sprint(w), fmt.Sprint(g))
	}
	if want.Phase == got.Phase {
		d.class(name, want.Message, got.Message)
	}
	d.outputs(name, want.Outputs, got.Outputs)
}

// class compares the classes of two messages, where the expected one is of a class that is known.
func (d *differences) class(where, want, got string) {
	if w := Classify(want); w != "" && w != Classify(got) {
		d.add(where, "kind of message", fmt.Sprintf("%s (%q)", w, want), fmt.Sprintf("%q", got))
	}
}

func (d *differences) outputs(where string, want, got Outputs) {
	names := map[string]bool{}
	for name := range want.Parameters {
		names[name] = true
	}
	for name := range got.Parameters {
		names[name] = true
	}
	for _, name := range slices.Sorted(maps.Keys(names)) {
		w, expected := want.Parameters[name]
		g, there := got.Parameters[name]
		what := "output parameter " + name
		switch {
		case !there:
			d.add(where, what, fmt.Sprintf("%q", w), "no such parameter")
		case !expected:
			d.add(where, what, "no such parameter", fmt.Sprintf("%q", g))
		case !d.value(w, g):
			d.add(where, what, fmt.Sprintf("%q", w), fmt.Sprintf("%q", g))
		}
	}
	if w, g := quoted(want.Result), quoted(got.Result); w != g && (want.Result == nil || got.Result == nil || !d.value(*want.Result, *got.Result)) {
		d.add(where, "result", w, g)
	}
	if want.ExitCode != got.ExitCode {
		d.add(where, "exit code", orNone(want.ExitCode), orNone(got.ExitCode))
	}
	if w, g := artifacts(want.Artifacts), artifacts(got.Artifacts); !slices.Equal(w, g) {
		d.add(where, "output artifacts", fmt.Sprint(w), fmt.Sprint(g))
	}
}

// value compares two values. One that describes the machine (a pod's /etc/hosts) may be anything here, but always the same.
func (d *differences) value(want, got string) bool {
	if strings.HasPrefix(want, "# Kubernetes-managed hosts file.") && got != NoValue && got != "" {
		got = podOwn.ReplaceAllString(got, "#")
		if bound, ok := d.machine[want]; ok {
			return bound == got
		}
		d.machine[want] = got
		return true
	}
	if generated.MatchString(want) && generated.ReplaceAllString(want, "") == generated.ReplaceAllString(got, "") && len(want) == len(got) {
		return true // the API server made both names up
	}
	return same(want, got, d.workflow)
}

// generated is what the API server puts after a generateName.
var generated = regexp.MustCompile(`-[bcdfghjklmnpqrstvwxz2456789]{5}$`)

// podOwn is what differs from pod to pod on one machine: addresses, and the numbers at the ends of their names.
var podOwn = regexp.MustCompile(`\b\d{1,3}(\.\d{1,3}){3}\b|-\d+\b`)

// artifacts are the names of output artifacts, without the logs: upstream ran with log archiving.
func artifacts(all []Artifact) []string {
	names := []string{}
	for _, a := range all {
		if !strings.HasSuffix(a.Name, "-logs") {
			names = append(names, a.Name)
		}
	}
	slices.Sort(names)
	return names
}

func byName(nodes []Node) map[string]Node {
	m := make(map[string]Node, len(nodes))
	for _, n := range nodes {
		m[n.Name] = n
	}
	return m
}

func set(names []string) []string {
	sorted := slices.Sorted(slices.Values(names))
	return slices.Compact(sorted)
}

func quoted(s *string) string {
	if s == nil {
		return "none"
	}
	return fmt.Sprintf("%q", *s)
}

func orNone(s string) string {
	if s == "" {
		return "none"
	}
	return s
}

func withMessage(phase, message string) string {
	if message == "" {
		return orNone(phase)
	}
	return fmt.Sprintf("%s (%s)", orNone(phase), message)
}
