// Command generate writes the JSON Schemas of the hook protocol from the Go types in the folder that it is given, and
// their comments.
package main

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/sluice-ml/sluice/api/v1alpha1/schema/generate/build"
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: generate FOLDER-OF-THE-TYPES")
		os.Exit(2)
	}
	files, err := build.Schemas(os.Args[1])
	if err == nil {
		for name, data := range files {
			if err = os.WriteFile(filepath.Join(os.Args[1], "schema", name), data, 0o600); err != nil { //nolint:gosec // a developer says where
				break
			}
		}
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
