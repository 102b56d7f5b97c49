package process

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/sluice-ml/sluice/internal/program"
)

// passed are the variables of this program that tasks get: what is needed to find programs and libraries, to show text
// and to reach the network from here. Everything else stays out, so that a task sees what its manifest says.
func passed(name string) bool {
	switch strings.ToUpper(name) {
	case "PATH", "LANG", "LANGUAGE", "TZ", "LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH", "PYTHONPATH", "VIRTUAL_ENV", "CONDA_PREFIX", "JAVA_HOME",
		"HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "ALL_PROXY", "SSL_CERT_FILE", "SSL_CERT_DIR", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE":
		return true
	}
	return strings.HasPrefix(name, "LC_") || strings.HasPrefix(name, "PIP_")
}

// environment is a list of variables in the order of their first setting.
type environment struct {
	names  []string
	values map[string]string
}

func (e *environment) set(name, value string) {
	if _, there := e.values[name]; !there {
		e.names = append(e.names, name)
	}
	e.values[name] = value
}

func (e *environment) list() []string {
	list := make([]string, len(e.names))
	for i, name := range e.names {
		list[i] = name + "=" + e.values[name]
	}
	return list
}

// expand replaces $(NAME) as Kubernetes does: an unknown name stays as it is, and $$ is a dollar sign.
func (e *environment) expand(text string) string {
	if !strings.Contains(text, "$") {
		return text
	}
	var out strings.Builder
	for i := 0; i < len(text); i++ {
		if text[i] != '$' || i+1 == len(text) {
			out.WriteByte(text[i])
			continue
		}
		switch text[i+1] {
		case '$':
			out.WriteByte('$')
			i++
			continue
		case '(':
			if end := strings.IndexByte(text[i:], ')'); end > 0 {
				if value, known := e.values[text[i+2:i+end]]; known {
					out.WriteString(value)
					i += end
					continue
				}
			}
		}
		out.WriteByte('$')
	}
	return out.String()
}

// find gives the file of a program in PATH, or of one that is a path itself; empty where there is none.
func (e *environment) find(program string) string {
	executable := func(file string) bool {
		info, err := os.Stat(file)
		return err == nil && info.Mode().IsRegular() && info.Mode()&0o111 != 0
	}
	if strings.Contains(program, "/") {
		if executable(program) {
			return program
		}
		return ""
	}
	for _, folder := range filepath.SplitList(e.values["PATH"]) {
		if file := filepath.Join(folder, program); program != "" && executable(file) {
			return file
		}
	}
	return ""
}

// searchPath is the PATH of tasks.
func searchPath(cfg Config) string {
	path := ""
	for _, v := range cfg.Env {
		if rest, ok := strings.CutPrefix(v, "PATH="); ok {
			path = rest
		}
	}
	if path == "" {
		path = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
	}
	return strings.Join(append(slices.Clone(cfg.ExtraPath), path), string(os.PathListSeparator))
}

// env builds a container's environment.
func (a *attempt) env(c program.Container, python *pythonEnv) (*environment, error) {
	vars := &environment{values: map[string]string{}}
	if a.b.cfg.Launcher == nil {
		a.machineEnv(vars, python)
	}
	a.taskEnv(vars)
	var broken []error
	for _, v := range c.Env {
		value, found, err := a.variable(v)
		if err != nil {
			broken = append(broken, fmt.Errorf("environment variable %s: %w", v.Name, err))
		} else if found {
			vars.set(v.Name, vars.expand(value))
		}
	}
	return vars, errors.Join(broken...)
}

// machineEnv sets what a task needs to find its way on this machine.
func (a *attempt) machineEnv(vars *environment, python *pythonEnv) {
	for _, v := range a.b.cfg.Env {
		if name, value, ok := strings.Cut(v, "="); ok && passed(name) {
			vars.set(name, value)
		}
	}
	path := searchPath(a.b.cfg)
	if python != nil && python.bin != "" {
		path = python.bin + string(os.PathListSeparator) + path
	}
	vars.set("PATH", path)
	vars.set("HOME", filepath.Join(a.folder, homeFolder))
	if a.b.view == nil {
		vars.set("TMPDIR", filepath.Join(a.folder, tempFolder))
	}
	if a.b.userBase != "" {
		vars.set("PYTHONUSERBASE", a.b.userBase)
	}
	if python != nil {
		for _, v := range python.env {
			name, value, _ := strings.Cut(v, "=")
			vars.set(name, value)
		}
	}
}

// taskEnv tells a task who it is.
func (a *attempt) taskEnv(vars *environment) {
	vars.set("HOSTNAME", a.cmd.Pod)
	vars.set("SLUICE_RUN", a.run.Name)
	vars.set("SLUICE_RUN_UID", a.run.UID)
	vars.set("SLUICE_TASK", a.cmd.Path)
	vars.set("SLUICE_ATTEMPT", strconv.Itoa(a.cmd.Attempt))
	vars.set("ARGO_WORKFLOW_NAME", a.run.Name)
	vars.set("ARGO_POD_NAME", a.cmd.Pod)
	vars.set("KFP_RUN_ID", a.run.UID)
	vars.set("KFP_POD_NAME", a.cmd.Pod)
}

// variable gives the value of one declared variable; an optional one may have none.
func (a *attempt) variable(v program.EnvVar) (value string, found bool, err error) {
	switch {
	case v.Secret != "":
		value, found = a.b.cfg.Secrets[v.Secret][v.Key]
		if !found && !v.Optional {
			return "", false, fmt.Errorf("no key %q of a Secret %q is known here", v.Key, v.Secret)
		}
	case v.ConfigMap != "":
		value, found = a.b.cfg.ConfigMaps[v.ConfigMap][v.Key]
		if !found && !v.Optional {
			return "", false, fmt.Errorf("no key %q of a ConfigMap %q is known here", v.Key, v.ConfigMap)
		}
	case v.Field != "":
		return a.field(v.Field)
	default:
		return v.Value, true, nil
	}
	return value, found, nil
}

// field gives what Kubernetes' downward API would, as far as it means something for a process.
func (a *attempt) field(field string) (string, bool, error) {
	name, rest, keyed := strings.Cut(field, "['")
	key := strings.TrimSuffix(rest, "']")
	switch {
	case keyed && name == "metadata.labels":
		return a.cmd.Labels[key], true, nil
	case keyed && name == "metadata.annotations":
		return a.cmd.Annotations[key], true, nil
	}
	switch field {
	case "metadata.name":
		return a.cmd.Pod, true, nil
	case "metadata.namespace":
		return a.run.Namespace, true, nil
	case "metadata.uid":
		return a.run.UID, true, nil
	case "spec.nodeName", "status.hostIP", "status.podIP", "status.hostIPs", "status.podIPs":
		if field == "spec.nodeName" {
			return a.b.host, true, nil
		}
		return "127.0.0.1", true, nil
	case "spec.serviceAccountName":
		return "default", true, nil
	}
	return "", false, fmt.Errorf("a process has no field %q", field)
}
