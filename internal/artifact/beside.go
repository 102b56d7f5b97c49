package artifact

import (
	"io/fs"
	"path"
	"strings"

	"github.com/sluice-ml/sluice/internal/program"
)

// Beside gives the store block for a URI in the same folder as an artifact's own, or below that, in the same store and with
// the same access to it. It is how a component chooses where its output lies (KFP's dsl.get_uri). ok is false for a URI
// anywhere else.
func Beside(given program.Artifact, uri string) (block program.JSON, ok bool) {
	end := strings.LastIndexByte(given.URI, '/') + 1
	folder := given.URI[:end]
	if folder == "" || folder == "/" || strings.HasSuffix(folder, "://") {
		return nil, false // everything would be beside it
	}
	rest, below := strings.CutPrefix(uri, folder)
	if !below || rest == "." || !fs.ValidPath(rest) || strings.ContainsAny(rest, "\\\x00") {
		return nil, false
	}
	if given.Store == nil {
		block, err := BlockOf(uri)
		return block, err == nil
	}
	kind, _, err := Kind(given.Store)
	if err != nil || kind == "http" && strings.ContainsAny(rest, "%?#") {
		return nil, false
	}
	key := rest // folders and addresses replace their last part by it
	if kind != "folder" && kind != "http" {
		key = path.Join(path.Dir(Key(given.Store)), rest)
	}
	block, err = WithKey(given.Store, key)
	return block, err == nil
}
