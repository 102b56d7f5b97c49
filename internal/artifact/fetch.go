package artifact

import (
	"context"
	"fmt"
	"strings"

	"github.com/sluice-ml/sluice/internal/artifact/transfer"
	"github.com/sluice-ml/sluice/internal/program"
)

// Fetch brings an artifact to a local path, in place of what is there. By a's Archive it is unpacked: "none" leaves it as
// it is, "tar" and "zip" demand that form, and "" looks at the bytes: a gzipped tar and a zip are unpacked, anything
// else is left as it is, as Argo does. An archive with a single entry at its top becomes that file or folder. SubPath
// narrows to what lies below it, inside an archive too.
func Fetch(ctx context.Context, a program.Artifact, local string, opts Options) error {
	if err := fetch(ctx, a, local, opts); err != nil {
		return fmt.Errorf("fetch artifact %s: %w", describe(a), err)
	}
	return nil
}

// describe names an artifact in messages.
func describe(a program.Artifact) string {
	from := ""
	switch {
	case a.URI != "":
		from = "from " + a.URI
	case a.Store != nil:
		if kind, _, err := Kind(a.Store); err == nil {
			from = "from its " + kind + " store"
		}
	}
	return strings.TrimSpace(a.Name + " " + from)
}

func fetch(ctx context.Context, a program.Artifact, local string, opts Options) error {
	s, err := OpenArtifact(a, opts)
	if err != nil {
		return err
	}
	return transfer.Fetch(ctx, s, transfer.Form{Archive: a.Archive, SubPath: a.SubPath}, local, opts.Limits)
}
