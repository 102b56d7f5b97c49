package main

import (
	"bytes"
	"strings"
	"testing"
)

func TestRun(t *testing.T) {
	tests := map[string]struct {
		events  []string
		wantOK  bool
		want    []string
		wantNot []string
	}{
		"all kinds of results": {
			events: []string{
				`{"Action":"run","Package":"p","Test":"TestA"}`,
				`{"Action":"output","Package":"p","Test":"TestA","Output":"noise of A\n"}`,
				`{"Action":"pass","Package":"p","Test":"TestA"}`,
				`{"Action":"run","Package":"p","Test":"TestB"}`,
				`{"Action":"output","Package":"p","Test":"TestB","Output":"    b_test.go:7: needs podman\n"}`,
				`{"Action":"skip","Package":"p","Test":"TestB"}`,
				`{"Action":"run","Package":"p","Test":"TestC"}`,
				`{"Action":"output","Package":"p","Test":"TestC","Output":"    c_test.go:9: got 1\n"}`,
				`{"Action":"fail","Package":"p","Test":"TestC"}`,
				`{"Action":"output","Package":"p","Output":"FAIL\tp\t0.1s\n"}`,
				`{"Action":"fail","Package":"p"}`,
			},
			want:    []string{"c_test.go:9: got 1", "p TestB: needs podman", "FAIL\tp\t0.1s", "x: 1 passed, 1 failed, 1 skipped"},
			wantNot: []string{"noise of A"},
		},
		"subtests count, their parent does not": {
			events: []string{
				`{"Action":"run","Package":"p","Test":"TestA"}`,
				`{"Action":"run","Package":"p","Test":"TestA/one"}`,
				`{"Action":"run","Package":"p","Test":"TestA/two"}`,
				`{"Action":"pass","Package":"p","Test":"TestA/one"}`,
				`{"Action":"pass","Package":"p","Test":"TestA/two"}`,
				`{"Action":"pass","Package":"p","Test":"TestA"}`,
				`{"Action":"pass","Package":"p"}`,
			},
			wantOK: true,
			want:   []string{"x: 2 passed, 0 failed, 0 skipped"},
		},
		"a package that does not compile fails": {
			events: []string{
				`{"ImportPath":"p","Action":"build-output","Output":"p/a.go:1:1: syntax error\n"}`,
				`{"Action":"fail","Package":"p","FailedBuild":"p"}`,
				`{"Action":"run","Package":"q","Test":"TestA"}`,
				`{"Action":"pass","Package":"q","Test":"TestA"}`,
			},
			want: []string{"syntax error", "x: 1 passed, 1 failed, 0 skipped"},
		},
		"nothing ran": {want: []string{"no test ran"}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			var out bytes.Buffer
			ok, err := run(strings.NewReader(strings.Join(test.events, "\n")), &out, "x")
			if err != nil {
				t.Fatal(err)
			}
			if ok != test.wantOK {
				t.Errorf("ok = %v, want %v", ok, test.wantOK)
			}
			for _, want := range test.want {
				if !strings.Contains(out.String(), want) {
					t.Errorf("output lacks %q:\n%s", want, &out)
				}
			}
			for _, not := range test.wantNot {
				if strings.Contains(out.String(), not) {
					t.Errorf("output has %q:\n%s", not, &out)
				}
			}
		})
	}
}
