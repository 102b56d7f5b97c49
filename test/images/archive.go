package images

import (
	"archive/tar"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
)

// Archive writes an image of some layers as an image archive, which container engines load: docker's form, which containerd
// takes, too. The image runs as root unless who runs it says otherwise.
func Archive(w io.Writer, names []string, entrypoint []string, layers ...[]byte) error {
	settings := map[string]any{"Env": []string{"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"}}
	if len(entrypoint) > 0 {
		settings["Entrypoint"] = entrypoint
	}
	type file struct {
		name string
		data []byte
	}
	var digests, layerFiles []string
	var files []file
	for _, layer := range layers {
		digest := hex256(layer)
		digests = append(digests, "sha256:"+digest)
		layerFiles = append(layerFiles, digest+"/layer.tar")
		files = append(files, file{digest + "/layer.tar", layer})
	}
	config, err := json.Marshal(map[string]any{
		"architecture": "amd64", "os": "linux", "config": settings,
		"rootfs": map[string]any{"type": "layers", "diff_ids": digests},
	})
	if err != nil {
		return fmt.Errorf("pack image %v: %w", names, err)
	}
	configFile := hex256(config) + ".json"
	manifest, err := json.Marshal([]any{map[string]any{"Config": configFile, "RepoTags": names, "Layers": layerFiles}})
	if err != nil {
		return fmt.Errorf("pack image %v: %w", names, err)
	}
	out := tar.NewWriter(w)
	for _, f := range append(files, file{configFile, config}, file{"manifest.json", manifest}) {
		err := out.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: f.name, Mode: 0o644, Size: int64(len(f.data))})
		if err == nil {
			_, err = out.Write(f.data)
		}
		if err != nil {
			return fmt.Errorf("pack image %v: %w", names, err)
		}
	}
	return out.Close()
}

func hex256(data []byte) string {
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}

// Folder is the tar archive of a root folder with some programs.
func Folder(files map[string][]byte) ([]byte, error) {
	var out bytes.Buffer
	w := tar.NewWriter(&out)
	for _, name := range slices.Sorted(maps.Keys(files)) {
		if err := w.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: name, Mode: 0o755, Size: int64(len(files[name]))}); err != nil {
			return nil, fmt.Errorf("pack %s: %w", name, err)
		}
		if _, err := w.Write(files[name]); err != nil {
			return nil, fmt.Errorf("pack %s: %w", name, err)
		}
	}
	return out.Bytes(), w.Close()
}
