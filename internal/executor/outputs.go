package executor

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"github.com/sluice-ml/sluice/internal/executor/kfpoutput"
	"github.com/sluice-ml/sluice/internal/executor/spec"
	"github.com/sluice-ml/sluice/internal/program"
)

// ParseOutput reads the file that KFP components write about their outputs: parameter values, and artifacts by name.
type ParseOutput func(data []byte) (map[string]any, map[string][]program.Artifact, error)

// collect takes the task's outputs. It does so for a failed task, too, whose missing outputs are no further error; for
// one that succeeded a missing output makes the result an Error, as with Argo.
func (j *job) collect(result *spec.Result) {
	missing := j.collectReported(result)
	missing = append(missing, j.collectParameters(result)...)
	missing = append(missing, j.collectArtifacts(result)...)
	if len(missing) > 0 && result.Phase == spec.Succeeded {
		result.Phase, result.Message = spec.Error, errors.Join(missing...).Error()
	}
}

func (j *job) collectParameters(result *spec.Result) (missing []error) {
	for _, p := range j.task.Parameters {
		if _, reported := result.Parameters[p.Name]; reported {
			continue // what the component reports wins over its files
		}
		text, err := readText(p.Path)
		switch {
		case err == nil:
			if p.Trim {
				text = strings.TrimSuffix(text, "\n")
			}
		case errors.Is(err, fs.ErrNotExist) && p.Default != nil:
			text = *p.Default
		case errors.Is(err, fs.ErrNotExist) && p.Optional:
			continue
		default:
			missing = append(missing, fmt.Errorf("output parameter %s: %w", p.Name, err))
			continue
		}
		setParameter(result, p.Name, text)
	}
	return missing
}

func setParameter(result *spec.Result, name string, value any) {
	if result.Parameters == nil {
		result.Parameters = map[string]any{}
	}
	result.Parameters[name] = value
}

// readText reads a small file that a task wrote.
func readText(name string) (string, error) {
	f, err := os.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0) // a pipe must not be waited for
	if err != nil {
		return "", err
	}
	defer f.Close()
	if info, err := f.Stat(); err != nil {
		return "", err
	} else if !info.Mode().IsRegular() {
		return "", fmt.Errorf("%s is not a regular file", name)
	}
	data, err := io.ReadAll(io.LimitReader(f, spec.MaxParameter+1))
	if err != nil {
		return "", err
	}
	if len(data) > spec.MaxParameter {
		return "", fmt.Errorf("%s is larger than %d bytes: make it an artifact", name, spec.MaxParameter)
	}
	return string(data), nil
}

func (j *job) collectArtifacts(result *spec.Result) (missing []error) {
	for i, a := range j.task.Artifacts {
		found, err := j.find(i, a, result.Reported[a.Name])
		switch {
		case err == nil:
			if result.Artifacts == nil {
				result.Artifacts = map[string]spec.Found{}
			}
			result.Artifacts[a.Name] = found
		case a.Optional && errors.Is(err, fs.ErrNotExist):
		default:
			missing = append(missing, fmt.Errorf("output artifact %s: %w", a.Name, err))
		}
	}
	return missing
}

// find stages one output artifact, or reads the files that stand for it.
func (j *job) find(i int, a spec.Artifact, reported []program.Artifact) (spec.Found, error) {
	var found spec.Found
	if a.KeyFrom != "" || a.MetadataFrom != "" {
		for file, text := range map[string]**string{a.KeyFrom: &found.Key, a.MetadataFrom: &found.Metadata} {
			if file == "" {
				continue
			}
			content, err := readText(file)
			if err != nil {
				return found, err
			}
			*text = &content
		}
		return found, nil
	}
	staged := path.Join(spec.StagedOut, strconv.Itoa(i))
	if len(reported) > 0 {
		return j.findReported(staged, a, reported)
	}
	if j.pod != nil {
		saved, err := j.pod.save(a.Name, "", "", a.Path)
		found.Saved = []spec.Saved{saved}
		return found, err
	}
	if err := j.stage(a.Path, staged); err != nil {
		return found, err
	}
	found.Staged = staged
	return found, nil
}

// findReported stages the bytes of artifacts that the component itself describes: at the path it chose, or the declared.
func (j *job) findReported(staged string, a spec.Artifact, reported []program.Artifact) (spec.Found, error) {
	var found spec.Found
	for k, r := range reported {
		from := r.CustomPath
		if from == "" {
			// A component may choose where its artifact lies (KFP's dsl.get_uri), and leaves it at the path of that URI.
			from = present(kfpoutput.TaskPath(r.URI))
		}
		if from == "" && k == 0 {
			from = a.Path
		}
		if j.pod != nil {
			saved, err := j.pod.saveReported(a.Name, r, from)
			if err != nil {
				return found, err
			}
			found.Saved = append(found.Saved, saved)
			continue
		}
		item := fmt.Sprintf("%s-%d", staged, k)
		if from == "" {
			item = ""
		} else if err := j.stage(from, item); errors.Is(err, fs.ErrNotExist) {
			item = ""
		} else if err != nil {
			return found, err
		}
		found.Items = append(found.Items, item)
	}
	return found, nil
}

// present gives a path back where something is there, else nothing.
func present(name string) string {
	if name == "" {
		return ""
	}
	if _, err := os.Stat(name); err != nil {
		return ""
	}
	return name
}

// resolve follows links to a file or folder.
func resolve(from string) (string, error) {
	resolved, err := filepath.EvalSymlinks(from)
	if err != nil {
		return "", err
	}
	if info, err := os.Stat(resolved); err != nil {
		return "", err
	} else if !info.Mode().IsRegular() && !info.IsDir() {
		return "", fmt.Errorf("%s is neither a file nor a folder", from)
	}
	return resolved, nil
}

// stage copies a file or folder of the task's view into the task folder.
func (j *job) stage(from, to string) error {
	resolved, err := resolve(from)
	if err != nil {
		return err
	}
	if err := j.dir.MkdirAll(spec.StagedOut, 0o700); err != nil {
		return err
	}
	if err := j.dir.RemoveAll(to); err != nil {
		return err
	}
	left, err := copyTree(taskView{layers: j.layers()}, resolved, j.dir, to)
	for _, name := range left {
		j.warnings = append(j.warnings, fmt.Sprintf("%s is neither file, folder nor link and was left out of an artifact", name))
	}
	return err
}

// layers are the places of the machine inside the folders that the sandbox empties.
func (j *job) layers() (list []string) {
	if j.task.Sandbox == nil {
		return nil
	}
	var empty []string
	for _, l := range j.task.Sandbox.Layers {
		if l.Fresh {
			empty = append(empty, l.Path)
		} else if slices.ContainsFunc(empty, func(folder string) bool { return strings.HasPrefix(l.Path, folder+"/") }) {
			list = append(list, l.Path)
		}
	}
	return list
}

// collectReported reads the executor output file, which need not be there.
func (j *job) collectReported(result *spec.Result) (broken []error) {
	if j.task.ExecutorOutput == "" || j.parse == nil {
		return nil
	}
	text, err := readText(j.task.ExecutorOutput)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return []error{fmt.Errorf("executor output: %w", err)}
	}
	parameters, artifacts, err := j.parse([]byte(text))
	if err != nil {
		return []error{fmt.Errorf("executor output %s: %w", j.task.ExecutorOutput, err)}
	}
	for name, value := range parameters {
		setParameter(result, name, value)
	}
	result.Reported = artifacts
	return nil
}
