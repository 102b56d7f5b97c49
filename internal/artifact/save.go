package artifact

import (
	"context"
	"fmt"

	"github.com/sluice-ml/sluice/internal/artifact/transfer"
	"github.com/sluice-ml/sluice/internal/program"
)

// Save stores a local file or folder where an artifact's description says, in place of what is there, and gives the
// description with Digest and Size. By a's Archive it is packed: "tar" (gzipped), "zip", or as it is for "none" and "".
// name is what the top of an archive is called: the base name of the path that the task knows it by.
//
// The digest is "sha256:" and hex: of the bytes as stored, or, for a tree, of the lines "<sha256 of file> <key>\n".
func Save(ctx context.Context, local, name string, a program.Artifact, opts Options) (program.Artifact, error) {
	saved, err := save(ctx, local, name, a, opts)
	if err != nil {
		return a, fmt.Errorf("store artifact %s: %w", describe(a), err)
	}
	return saved, nil
}

func save(ctx context.Context, local, name string, a program.Artifact, opts Options) (program.Artifact, error) {
	s, err := OpenArtifact(a, opts)
	if err != nil {
		return a, err
	}
	saved, err := transfer.Save(ctx, s, local, name, a.Archive, opts.Level)
	if err != nil {
		return a, err
	}
	a.Digest, a.Size = saved.Digest, saved.Size
	return a, nil
}
