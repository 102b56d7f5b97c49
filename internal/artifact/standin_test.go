package artifact_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sluice-ml/sluice/internal/artifact"
	"github.com/sluice-ml/sluice/internal/program"
)

func TestAFolderStandsInForStoresOutOfReach(t *testing.T) {
	const s3 = `{"s3": {"endpoint": "minio:9000", "bucket": "b", "key": "a/x.tgz", "accessKeySecret": {"name": "cred", "key": "id"}, "secretKeySecret": {"name": "cred", "key": "key"}}}`
	none := func(name, key string) (string, error) { return "", errors.New("there is no Secret " + name) }
	for _, c := range []struct{ name, block, file string }{
		{"s3 without its secret", s3, "s3/b/a/x.tgz"},
		{"no client", `{"gcs": {"bucket": "g", "key": "m"}}`, "gcs/g/m"},
		{"azure", `{"azure": {"endpoint": "https://x", "container": "c", "blob": "d/e"}}`, "azure/c/d/e"},
		{"plugin", `{"plugin": {"name": "p", "key": "k"}}`, "plugin/p/k"},
		{"artifactory", `{"artifactory": {"url": "https://host/repo/file"}}`, "artifactory/host/repo/file"},
	} {
		t.Run(c.name, func(t *testing.T) {
			folder := t.TempDir()
			var told []string
			opts := artifact.Options{Secrets: none, StandIn: artifact.StandIn{Folder: folder, Used: func(place, _ string, reason error) {
				told = append(told, place+": "+reason.Error())
			}}}
			s, err := artifact.Open(program.JSON(c.block), opts)
			if err != nil {
				t.Fatal(err)
			}
			if err := s.Put(context.Background(), "", strings.NewReader("bytes"), 5); err != nil {
				t.Fatal(err)
			}
			if got, err := os.ReadFile(filepath.Join(folder, c.file)); err != nil || string(got) != "bytes" {
				t.Errorf("got %q, %v", got, err)
			}
			if len(told) != 1 {
				t.Errorf("told %q, want one reason", told)
			}
			opts.StandIn = artifact.StandIn{}
			if _, err := artifact.Open(program.JSON(c.block), opts); err == nil {
				t.Error("without a folder the reason must be an error")
			}
		})
	}
}

func TestNothingStandsInOutsideItsFolder(t *testing.T) {
	opts := artifact.Options{StandIn: artifact.StandIn{Folder: t.TempDir()}}
	for _, block := range []string{
		`{"gcs": {"bucket": "..", "key": "../../x"}}`, `{"gcs": {"bucket": "g", "key": ""}}`, `{"folder": {"path": "relative"}}`, `{"unheard": {"key": "k"}}`,
	} {
		if s, err := artifact.Open(program.JSON(block), opts); err == nil {
			t.Errorf("%s opened %v", block, s)
		}
	}
}
