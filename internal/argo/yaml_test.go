package argo

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestScalars(t *testing.T) {
	// What Kubernetes' tools make of scalars: YAML 1.1.
	for in, want := range map[string]string{
		"yes": "true", "on": "true", "Off": "false", "n": "false", "true": "true",
		"0755": "493", "0x1F": "31", "0b11": "3", "0o17": "15", "1_000": "1000", "+5": "5", "-3": "-3",
		"1.50": "1.5", ".5": "0.5", "1e3": "1000", "1e21": "1e+21", "08": "8", "18446744073709551615": "18446744073709551615",
		"~": "null", "null": "null", "''": `""`, `"yes"`: `"yes"`, "'0755'": `"0755"`,
		"!!str 3": `"3"`, "!!int '3'": "3", "!!binary aGk=": `"hi"`, "1.2.3": `"1.2.3"`, "2020-01-02": `"2020-01-02"`,
		"-": "[null]", ".inf": `".inf"`, "1e999": `"1e999"`, "hello": `"hello"`, "'a: b'": `"a: b"`,
	} {
		docs, _, err := parseDocuments([]byte("v: " + in))
		if in == "-" {
			docs, _, err = parseDocuments([]byte("v:\n-"))
		}
		if err != nil {
			t.Errorf("%s: %v", in, err)
			continue
		}
		if got := string(docs[0].get("v").json()); got != want {
			t.Errorf("%s is %s, want %s", in, got, want)
		}
	}
}

func TestDocuments(t *testing.T) {
	src := "# comment only\n---\na: &x {p: 1, q: [2]}\nb:\n  <<: *x\n  p: 3\nc: *x\n---\n\n---\na: 1\na: 2\n"
	docs, notes, err := parseDocuments([]byte(src))
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, d := range docs {
		got = append(got, string(d.json()))
	}
	want := []string{`{"a":{"p":1,"q":[2]},"b":{"p":3,"q":[2]},"c":{"p":1,"q":[2]}}`, `{"a":2}`}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if len(notes) != 1 || notes[0].line != 12 || !strings.Contains(notes[0].text, `"a" was given before, in line 11`) {
		t.Errorf("notes: %v", notes)
	}
	if line := docs[0].markOf("b.q[0]").line; line != 3 {
		t.Errorf("a merged value is in line %d, want 3", line)
	}
}

func TestJSONDocument(t *testing.T) {
	src := "{\n\t\"a\": \"\\ud83d\\ude00\",\n\t\"b\": [1, 2.5,\n {\"c\": null}], \"b\": true}"
	docs, notes, err := parseDocuments([]byte(src))
	if err != nil {
		t.Fatal(err)
	}
	if got, want := string(docs[0].json()), `{"a":"😀","b":true}`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	if len(notes) != 1 || notes[0].line != 4 {
		t.Errorf("notes: %v", notes)
	}
	if line := docs[0].markOf("a").line; line != 2 {
		t.Errorf("a is in line %d, want 2", line)
	}
}

func TestBounds(t *testing.T) {
	bomb := "a: &a [x,x,x,x,x,x,x,x,x,x]\n"
	for i := range 8 {
		prev, next := string(rune('a'+i)), string(rune('b'+i))
		bomb += fmt.Sprintf("%s: &%s [*%s,*%s,*%s,*%s,*%s,*%s,*%s,*%s,*%s,*%s]\n", next, next, prev, prev, prev, prev, prev, prev, prev, prev, prev, prev)
	}
	for name, tc := range map[string]struct{ src, want string }{
		"bomb":      {bomb, "values once its aliases are expanded"},
		"deep list": {"a: " + strings.Repeat("[", 5000) + strings.Repeat("]", 5000), "nested more than"},
		"deep JSON": {`{"a": ` + strings.Repeat("[", 5000) + strings.Repeat("]", 5000) + "}", "nested more than"},
		"deep map":  {"a: " + strings.Repeat("{a: ", 3000) + "1" + strings.Repeat("}", 3000), "nested more than"},
		"circle":    {"a: &a\n  b: *a\n", "nested more than"},
		"size":      {"a: " + strings.Repeat("x", 17<<20), "is 17 MiB"},
		"tab":       {"a:\n\t- b", "not valid YAML"},
		"tag":       {"a: !ruby/object:X {}", ""},
		"odd tag":   {"a: !x y", "means nothing here"},
		"list key":  {"? [a]\n: b", "must be a plain text"},
		"merge":     {"<<: 3", "must be given an object"},
		"binary":    {"a: !!binary '*'", "not base64"},
		"anchor":    {"a: *none", "unknown anchor"},
	} {
		_, _, err := parseDocuments([]byte(tc.src))
		if tc.want == "" {
			if err != nil {
				t.Errorf("%s: %v", name, err)
			}
			continue
		}
		if err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: %v, want something with %q", name, err, tc.want)
		}
	}
}

func TestIsArgo(t *testing.T) {
	for src, want := range map[string]bool{
		"apiVersion: argoproj.io/v1alpha1\nkind: Workflow":                           true,
		"kind: Workflow\n\"apiVersion\": 'argoproj.io/v1alpha1'":                     true,
		`{"apiVersion": "argoproj.io/v1alpha1"}`:                                     true,
		"apiVersion: v1\nkind: ConfigMap\n---\napiVersion: argoproj.io/v1alpha1\n":   true,
		"apiVersion: argoproj.io/v1alpha1\nspec: ]not yaml":                          true,
		"apiVersion: v1\nkind: List\nitems: [{apiVersion: argoproj.io/v1alpha1}]":    true,
		"components: {}\ntext: 'apiVersion: argoproj.io/v1alpha1'":                   false,
		"apiVersion: v1\nkind: ConfigMap\ndata: {x: \"apiVersion: argoproj.io/v1\"}": false,
		"dbapiVersion: argoproj.io/v1alpha1":                                         false,
		"":                                                                           false,
	} {
		if got := IsArgo([]byte(src)); got != want {
			t.Errorf("IsArgo(%q) is %v", src, got)
		}
	}
}
