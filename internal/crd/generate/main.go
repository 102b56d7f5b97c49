// Command generate writes the CustomResourceDefinitions to deploy/crds of the module whose folder it is given.
package main

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/sluice-ml/sluice/internal/crd"
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: generate FOLDER-OF-THE-MODULE")
		os.Exit(2)
	}
	if err := write(os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func write(root string) error {
	files, err := crd.Files(root)
	if err != nil {
		return err
	}
	for name, data := range files {
		if err := os.WriteFile(filepath.Join(root, "deploy", "crds", name), data, 0o600); err != nil { //nolint:gosec // a developer says where
			return err
		}
	}
	return nil
}
