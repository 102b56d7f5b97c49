package artifact

import (
	"testing"

	"github.com/sluice-ml/sluice/internal/program"
)

func TestBeside(t *testing.T) {
	s3 := program.Artifact{URI: "s3://b/run/task/model", Store: program.JSON(`{"s3":{"bucket":"b","endpoint":"minio:9000","key":"run/task/model"}}`)}
	folder := program.Artifact{URI: "/data/run/task/model", Store: program.JSON(`{"folder":{"path":"/data/run/task/model"}}`)}
	web := program.Artifact{URI: "https://h/run/task/model", Store: program.JSON(`{"http":{"url":"https://h/run/task/model"}}`)}
	tests := map[string]struct {
		given program.Artifact
		uri   string
		want  string // empty is not beside
	}{
		"its neighbour":            {given: s3, uri: "s3://b/run/task/other", want: `{"s3":{"bucket":"b","endpoint":"minio:9000","key":"run/task/other"}}`},
		"below":                    {given: s3, uri: "s3://b/run/task/a/b", want: `{"s3":{"bucket":"b","endpoint":"minio:9000","key":"run/task/a/b"}}`},
		"another task's":           {given: s3, uri: "s3://b/run/task2/x"},
		"another bucket":           {given: s3, uri: "s3://c/run/task/x"},
		"up again":                 {given: s3, uri: "s3://b/run/task/../x"},
		"the folder itself":        {given: s3, uri: "s3://b/run/task/"},
		"a folder":                 {given: folder, uri: "/data/run/task/x", want: `{"folder":{"path":"/data/run/task/x"}}`},
		"written otherwise":        {given: folder, uri: "/data/run/task/%2e%2e/x", want: `{"folder":{"path":"/data/run/task/%2e%2e/x"}}`},
		"a folder, up again":       {given: folder, uri: "/data/run/task/../../x"},
		"a backslash":              {given: folder, uri: `/data/run/task/..\x`},
		"an address":               {given: web, uri: "https://h/run/task/x", want: `{"http":{"url":"https://h/run/task/x"}}`},
		"an address, up again":     {given: web, uri: "https://h/run/task/%2e%2e/x"},
		"beside a bucket is none":  {given: program.Artifact{URI: "s3://b", Store: s3.Store}, uri: "s3://c/secret"},
		"beside the root, nothing": {given: program.Artifact{URI: "/x"}, uri: "/etc/passwd"},
		"without a place":          {given: program.Artifact{}, uri: "s3://b/x"},
		"only a URI":               {given: program.Artifact{URI: "/a/b"}, uri: "/a/c", want: `{"folder":{"path":"/a/c"}}`},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			block, ok := Beside(test.given, test.uri)
			if string(block) != test.want || ok != (test.want != "") {
				t.Errorf("%s, %v", block, ok)
			}
		})
	}
}
