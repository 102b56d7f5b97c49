package engine

import (
	"strings"
	"testing"

	"github.com/sluice-ml/sluice/internal/program"
)

func TestReach(t *testing.T) {
	r := reach{
		folders: []string{"/home/u/artifacts"},
		known: []program.Artifact{
			{URI: "/data/set"},
			{URI: "file:///data/file.csv"},
			{Store: program.JSON(`{"folder":{"path":"/srv/in"}}`)},
			{Store: program.JSON(`{"s3":{"bucket":"b","key":"k","secretKeySecret":{"name":"s","key":"k"}}}`)},
			{Store: program.JSON(`{"archiveLogs":true,"s3":{"bucket":"repo","keyFormat":"{{workflow.name}}","accessKeySecret":{"name":"s","key":"k"}}}`)},
			{URI: "/etc/passwd", Store: program.JSON(`{"s3":{"bucket":"b","key":"passwd"}}`)},
		},
	}
	uri := func(s string) program.Artifact { return program.Artifact{URI: s} }
	store := func(s string) program.Artifact { return program.Artifact{Store: program.JSON(s)} }
	for name, c := range map[string]struct {
		a    program.Artifact
		want string // part of the error; empty is none
	}{
		"only a description":              {program.Artifact{Type: "system.Metrics"}, ""},
		"of this run or another":          {uri("/home/u/artifacts/uid/t/model.tgz"), ""},
		"as a file URL":                   {uri("file:///home/u/artifacts/uid/t/model.tgz"), ""},
		"as a folder store":               {store(`{"folder":{"path":"/home/u/artifacts/x"}}`), ""},
		"an input":                        {uri("/data/set"), ""},
		"in an input":                     {uri("/data/set/part-1"), ""},
		"an input, by its file URL":       {uri("/data/file.csv"), ""},
		"in an input's folder store":      {store(`{"folder":{"path":"/srv/in/a"}}`), ""},
		"elsewhere":                       {uri("/etc/shadow"), "/etc/shadow\" is outside of what the workflow may read: /home/u/artifacts"},
		"elsewhere, as a file URL":        {uri("file:///etc/shadow"), "outside"},
		"elsewhere, in capitals":          {uri("FILE:///etc/shadow"), "outside"},
		"elsewhere, with a host":          {uri("file://localhost/etc/shadow"), "no absolute path"},
		"elsewhere, without slashes":      {uri("file:/etc/shadow"), "outside"},
		"elsewhere, as a folder store":    {store(`{"folder":{"path":"/etc/shadow"}}`), "outside"},
		"elsewhere, in other letters":     {store(`{"folder":{"PATH":"/etc/shadow"}}`), "outside"},
		"elsewhere, with a good URI":      {program.Artifact{URI: "/data/set", Store: program.JSON(`{"folder":{"path":"/etc/shadow"}}`)}, "outside"},
		"elsewhere, with a good store":    {program.Artifact{URI: "/etc/shadow", Store: program.JSON(`{"s3":{"bucket":"b","key":"k"}}`)}, "outside"},
		"out of the folder":               {uri("/home/u/artifacts/../.ssh/id"), "/home/u/.ssh/id"},
		"out of the folder, escaped":      {uri("file:///home/u/artifacts/%2e%2e/.ssh/id"), "/home/u/.ssh/id"},
		"a folder of a longer name":       {uri("/home/u/artifacts-of-others/x"), "outside"},
		"an input of a longer name":       {uri("/data/settings"), "outside"},
		"beside the working folder":       {uri("../../etc/shadow"), "no absolute path"},
		"a bucket":                        {uri("s3://bucket/key"), ""},
		"a web address":                   {uri("https://host.example/file"), ""},
		"the cloud's metadata service":    {uri("http://169.254.169.254/latest"), "link-local"},
		"the same, as IPv6":               {uri("http://[fe80::1]/latest"), "link-local"},
		"the same, as a store":            {store(`{"http":{"url":"http://169.254.169.254/latest"}}`), "link-local"},
		"the same, as an endpoint":        {store(`{"s3":{"bucket":"b","key":"k","endpoint":"169.254.169.254:80"}}`), "link-local"},
		"a repository of this machine":    {store(`{"git":{"repo":"/root/private"}}`), "outside"},
		"a store without Secrets":         {store(`{"s3":{"bucket":"b","key":"k"}}`), ""},
		"another key of a known store":    {store(`{"s3":{"key":"other","secretKeySecret":{"key":"k","name":"s"},"bucket":"b"}}`), ""},
		"the artifact repository":         {store(`{"s3":{"bucket":"repo","key":"old/o.tgz","accessKeySecret":{"name":"s","key":"k"}}}`), ""},
		"Secrets for another bucket":      {store(`{"s3":{"bucket":"c","key":"k","secretKeySecret":{"name":"s","key":"k"}}}`), "refers to Secrets"},
		"Secrets for another server":      {store(`{"http":{"url":"https://evil.example","auth":{"basicAuth":{"passwordSecret":{"name":"s","key":"k"}}}}}`), "refers to Secrets"},
		"Secrets in other letters":        {store(`{"http":{"url":"https://evil.example","auth":{"basicAuth":{"PASSWORDsecret":{"name":"s","key":"k"}}}}}`), "refers to Secrets"},
		"a known artifact, as it is":      {program.Artifact{URI: "/etc/passwd", Store: program.JSON(`{"s3":{"key":"passwd","bucket":"b"}}`)}, ""},
		"a known URI with another store":  {program.Artifact{URI: "/etc/passwd", Store: program.JSON(`{"folder":{"path":"/etc/shadow"}}`)}, "outside"},
		"no store block":                  {store(`{"folder":"x"}`), "no store block"},
		"an unknown scheme, only a label": {uri("pipeline://dataset/3"), ""},
	} {
		t.Run(name, func(t *testing.T) {
			err := r.check(c.a)
			switch {
			case c.want == "" && err != nil:
				t.Errorf("refused: %s", err)
			case c.want != "" && err == nil:
				t.Errorf("allowed, want an error with %q", c.want)
			case c.want != "" && !strings.Contains(err.Error(), c.want):
				t.Errorf("error %q, want one with %q", err, c.want)
			}
		})
	}
}
