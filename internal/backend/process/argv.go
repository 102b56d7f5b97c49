package process

import (
	"fmt"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/sluice-ml/sluice/internal/program"
)

// defaultImages are entrypoints of images that many examples use without a command.
func defaultImages() map[string][]string {
	return map[string][]string{"argoproj/argosay": {"argosay"}}
}

// argv is a container's command line: its command, or what its image would run, then its arguments, and for a script
// the file with its source.
func (a *attempt) argv(c program.Container, python bool, vars *environment) ([]string, error) {
	command := c.Command
	if python && len(a.cmd.Body.PythonCommand) > 0 {
		command = a.cmd.Body.PythonCommand
	}
	var argv []string
	for _, word := range command {
		argv = append(argv, vars.expand(word))
	}
	var args []string
	for _, word := range c.Args {
		args = append(args, vars.expand(word))
	}
	if len(argv) == 0 {
		entry, err := a.entrypoint(c.Image, args, vars)
		if err != nil {
			return nil, err
		}
		argv = append(argv, entry...)
	}
	if len(argv) > 0 && a.b.cfg.Launcher == nil {
		argv[0] = a.stand(c, argv[0], vars)
	}
	argv = append(argv, args...)
	if a.cmd.Body.Kind == program.Script {
		file := filepath.Join(a.folder, scriptFile)
		if err := os.WriteFile(file, []byte(a.cmd.Body.Script), 0o755); err != nil {
			return nil, fmt.Errorf("write the script: %w", err)
		}
		argv = append(argv, a.inside(scriptFile))
	}
	return argv, nil
}

// entrypoint finds what to run for a container without a command. It is empty where the first argument is a program.
func (a *attempt) entrypoint(image string, args []string, vars *environment) ([]string, error) {
	if a.b.cfg.Launcher != nil {
		return a.b.cfg.Launcher.Entrypoint(a.ctx, image, args)
	}
	name := imageName(image)
	if entry, ok := a.b.cfg.Images[name]; ok {
		return entry, nil
	}
	if entry, ok := defaultImages()[name]; ok {
		return entry, nil
	}
	if len(args) > 0 && vars.find(args[0]) != "" {
		return nil, nil
	}
	return nil, fmt.Errorf("no command is given and the entrypoint of image %q is not known here: set command, or name the entrypoint under images in the configuration", image)
}

// stand finds what stands in for a program that an image has at a fixed place and this machine has not: one of the same
// name on PATH. What the task itself brings, as an input or in a volume, is left alone.
func (a *attempt) stand(c program.Container, name string, vars *environment) string {
	if !path.IsAbs(name) || vars.find(name) != "" {
		return name
	}
	brought := func(place string) bool {
		return place != "" && (name == place || strings.HasPrefix(name, strings.TrimSuffix(place, "/")+"/"))
	}
	for _, places := range a.cmd.ArtifactPaths {
		if slices.ContainsFunc(places, brought) {
			return name
		}
	}
	if slices.ContainsFunc(c.Mounts, func(m program.Mount) bool { return brought(m.Path) }) {
		return name
	}
	if base := path.Base(name); vars.find(base) != "" {
		return base
	}
	return name
}

// imagePrograms are programs that an image has at a fixed place, by path, with the name of what plays them here.
func imagePrograms() map[string]map[string]string {
	return map[string]map[string]string{"argoproj/argosay": {"/argosay": "argosay"}}
}

// programs are links in the task's view for the programs of its images that are on PATH here: a script may call them by
// their place in the image.
func (a *attempt) programs() map[string]string {
	path := &environment{values: map[string]string{"PATH": searchPath(a.b.cfg)}}
	var links map[string]string
	for _, c := range a.cmd.Body.Containers {
		for place, name := range imagePrograms()[imageName(c.Image)] {
			if file := path.find(name); file != "" {
				if links == nil {
					links = map[string]string{}
				}
				links[place] = file
			}
		}
	}
	return links
}

// imageName is an image without its tag, digest and the default registry.
func imageName(image string) string {
	name, _, _ := strings.Cut(image, "@")
	if colon := strings.LastIndexByte(name, ':'); colon > strings.LastIndexByte(name, '/') {
		name = name[:colon]
	}
	name = strings.TrimPrefix(name, "docker.io/")
	return strings.TrimPrefix(name, "library/")
}
