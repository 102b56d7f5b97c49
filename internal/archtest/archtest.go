// Package archtest holds the rules of the project's structure, as a table and as a test: which folder may import which,
// which packages stay pure, who may read the environment, and how long a file may be. docs/architecture.md has the
// picture that the table comes from; a new folder gets a line in both.
package archtest

import (
	"fmt"
	"slices"
	"strings"
)

// Module is the path of this module; the rules name packages relative to it.
const Module = "github.com/sluice-ml/sluice"

// Package is what `go list -json` tells of a package, as far as the rules need it.
type Package struct {
	ImportPath string
	Dir        string
	GoFiles    []string
	CgoFiles   []string
	Imports    []string
	Deps       []string
}

// Layer is a folder and what it may import of this module: the folders named and what lies below them. A folder
// may always import its own subfolders and siblings inside the same layer.
type Layer struct {
	Folder string
	May    []string
}

// Layers is the direction of imports, down the flow only. The longest folder that a package lies in decides.
func Layers() []Layer {
	return []Layer{
		{Folder: "api", May: nil},
		{Folder: "pkg", May: []string{"api"}},
		{Folder: "internal/program", May: nil},
		{Folder: "internal/expr", May: []string{"internal/program"}},
		{Folder: "internal/engine", May: []string{"internal/program", "internal/expr"}},
		{Folder: "internal/artifact", May: []string{"internal/program"}},
		{Folder: "internal/executor", May: []string{"internal/program", "internal/artifact"}},
		{Folder: "internal/argo", May: []string{"internal/program", "internal/expr", "internal/engine"}},
		{Folder: "internal/kfp", May: []string{"internal/program", "internal/expr", "internal/engine"}},
		{Folder: "internal/metadata", May: []string{"internal/program"}},
		{Folder: "internal/hook", May: []string{
			"api", "pkg", "internal/program", "internal/expr", "internal/engine", "internal/artifact", "internal/metadata", "internal/kfp/fingerprint",
		}},
		{Folder: "internal/backend", May: []string{
			"internal/program", "internal/engine", "internal/artifact", "internal/executor", "internal/tokenreview",
		}},
		{Folder: "internal/tokenreview", May: nil},
		{Folder: "internal/store", May: []string{"internal/program", "internal/engine", "internal/metadata"}},
		{Folder: "internal/store/kube", May: []string{"api", "internal/program", "internal/engine", "internal/store"}},
		{Folder: "internal/crd", May: []string{"api", "deploy", "internal/program", "internal/expr", "internal/engine", "internal/argo"}},
		{Folder: "deploy", May: nil},
		{Folder: "internal/cluster", May: []string{
			"api", "internal/program", "internal/expr", "internal/engine", "internal/argo", "internal/kfp", "internal/store", "internal/submission",
			"internal/controller/status",
		}},
		{Folder: "internal/controller", May: []string{
			"api", "internal/program", "internal/expr", "internal/engine", "internal/argo", "internal/kfp", "internal/artifact", "internal/hook",
			"internal/backend", "internal/store", "internal/runner", "internal/submission", "internal/cluster/refs",
		}},
		{Folder: "internal/runner", May: []string{"internal/program", "internal/expr", "internal/engine"}},
		{Folder: "internal/capacity", May: nil},
		{Folder: "internal/submission", May: []string{
			"internal/program", "internal/expr", "internal/engine", "internal/argo", "internal/kfp", "internal/store",
		}},
		{Folder: "internal/cli", May: []string{
			"api", "pkg", "deploy", "internal/program", "internal/expr", "internal/engine", "internal/artifact", "internal/executor", "internal/argo",
			"internal/kfp", "internal/metadata", "internal/hook", "internal/backend", "internal/store", "internal/runner", "internal/submission", "internal/controller", "internal/capacity", "internal/cluster",
		}},
		{Folder: "internal/archtest", May: nil},
		{Folder: "cmd/sluice-executor", May: []string{"internal/executor", "internal/program", "internal/artifact"}},
		{Folder: "cmd/sluice", May: []string{"internal/cli"}},
		{Folder: "test", May: []string{"api", "pkg"}},
		{Folder: "examples", May: []string{"api", "pkg"}},
	}
}

// CheckLayers reports every import that goes against the table, and every package that lies in no layer.
func CheckLayers(layers []Layer, packages []Package) []string {
	var found []string
	for _, p := range packages {
		from, ok := relative(p.ImportPath)
		if !ok {
			continue
		}
		layer, ok := layerOf(layers, from)
		if !ok {
			found = append(found, fmt.Sprintf("%s lies in no layer: add its folder to internal/archtest and docs/architecture.md", from))
			continue
		}
		for _, imported := range p.Imports {
			to, ok := relative(imported)
			if !ok || within(to, layer.Folder) || slices.ContainsFunc(layer.May, func(folder string) bool { return within(to, folder) }) {
				continue
			}
			found = append(found, fmt.Sprintf("%s imports %s: %s may import %s", from, to, layer.Folder, list(layer.May)))
		}
	}
	return found
}

// Ban keeps packages out of what a folder uses. Direct looks at the folder's own imports only, else everything that
// comes along counts.
type Ban struct {
	Folder string
	Not    []string // import paths; with "/..." at the end also all below
	Direct bool
	Why    string
}

// Bans are the imports that a folder must do without.
func Bans() []Ban {
	pure := []string{"os/...", "net", "net/http/...", "math/rand", "crypto/rand", "log/...", "syscall"}
	return []Ban{
		{Folder: "internal/engine", Not: append([]string{"math/rand/v2", "sync/..."}, pure...), Direct: true, Why: "the engine is a pure state machine: no IO, no randomness"},
		{Folder: "internal/program", Not: pure, Direct: true, Why: "the program is data"},
		{Folder: "internal/expr", Not: pure, Direct: true, Why: "expressions see only what the event and the program say"}, // math/rand/v2 with the event's seed
		{
			Folder: "internal/executor", Not: []string{
				Module + "/internal/engine/...", Module + "/internal/runner/...", Module + "/internal/artifact", "k8s.io/...", "github.com/minio/...",
			},
			Why: "the executor is small and goes into every task",
		},
		{
			Folder: "cmd/sluice-executor", Not: []string{
				Module + "/internal/engine/...", Module + "/internal/artifact", "k8s.io/...", "github.com/minio/...", "modernc.org/...", "github.com/spf13/cobra",
			},
			Why: "the executor is small and goes into every task",
		},
		{Folder: "internal/engine", Not: []string{"k8s.io/..."}, Why: "the engine knows nothing of where tasks run"},
	}
}

// CheckBans reports every banned import.
func CheckBans(bans []Ban, packages []Package) []string {
	var found []string
	for _, ban := range bans {
		for _, p := range packages {
			from, ok := relative(p.ImportPath)
			if !ok || !within(from, ban.Folder) {
				continue
			}
			used := p.Deps
			if ban.Direct {
				used = p.Imports
			}
			for _, name := range used {
				if slices.ContainsFunc(ban.Not, func(not string) bool { return matches(name, not) }) {
					found = append(found, fmt.Sprintf("%s uses %s: %s", from, name, ban.Why))
				}
			}
		}
	}
	return found
}

// Only keeps packages to some folders: no other file may import them itself.
type Only struct {
	Packages []string // with "/..." at the end also all below
	In       []string
	Why      string
}

// Onlys are the imports that only some folders may have.
func Onlys() []Only {
	return []Only{
		{
			Packages: []string{"k8s.io/client-go/...", "sigs.k8s.io/controller-runtime/...", "k8s.io/apiextensions-apiserver/..."},
			In:       []string{"internal/backend/kube", "internal/controller", "internal/store/kube", "internal/tokenreview", "internal/cluster", "internal/cli", "test"},
			Why:      "a cluster is reached through the backend, the controller and the journal; the commands put them together",
		},
	}
}

// CheckOnlys reports every import outside of the folders that may have it.
func CheckOnlys(onlys []Only, packages []Package) []string {
	var found []string
	for _, only := range onlys {
		for _, p := range packages {
			from, ok := relative(p.ImportPath)
			if !ok || slices.ContainsFunc(only.In, func(folder string) bool { return within(from, folder) }) {
				continue
			}
			for _, name := range p.Imports {
				if slices.ContainsFunc(only.Packages, func(pattern string) bool { return matches(name, pattern) }) {
					found = append(found, fmt.Sprintf("%s imports %s: %s", from, name, only.Why))
				}
			}
		}
	}
	return found
}

// relative is a package's path inside the module.
func relative(importPath string) (string, bool) {
	if importPath == Module {
		return ".", true
	}
	return strings.CutPrefix(importPath, Module+"/")
}

// within says whether a path is a folder or lies below it.
func within(path, folder string) bool {
	return path == folder || strings.HasPrefix(path, folder+"/")
}

// matches says whether an import path is the pattern, or lies below it where the pattern ends in "/...".
func matches(path, pattern string) bool {
	if folder, ok := strings.CutSuffix(pattern, "/..."); ok {
		return within(path, folder)
	}
	return path == pattern
}

// layerOf finds the layer with the longest folder that a package lies in.
func layerOf(layers []Layer, path string) (Layer, bool) {
	var best Layer
	for _, layer := range layers {
		if within(path, layer.Folder) && len(layer.Folder) > len(best.Folder) {
			best = layer
		}
	}
	return best, best.Folder != ""
}

// list joins folders for a message.
func list(folders []string) string {
	if len(folders) == 0 {
		return "nothing of this module"
	}
	return strings.Join(folders, ", ")
}
