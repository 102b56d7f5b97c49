package kfpexpr

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/url"
	"strings"
	"time"

	"github.com/sluice-ml/sluice/internal/expr"
	"github.com/sluice-ml/sluice/internal/program"
)

// WorkspacePath is where a run's workspace is mounted.
const WorkspacePath = "/kfp-workspace"

// resolve gives a placeholder's value. Known is false for what is no placeholder of the language. A value that is
// missing is an [*expr.UnresolvedError]; null is a value.
func (l *language) resolve(p placeholder, env expr.Env) (v any, known bool, err error) {
	s := p.steps
	if len(s) == 0 {
		return compact(executorInput(env)), true, nil
	}
	switch {
	case len(s) == 3 && s[0] == "inputs" && s[1] == "parameters":
		v, err := lookup(p, env, "inputs", "parameters", s[2])
		return v, true, err
	case len(s) == 3 && (s[0] == "inputs" || s[0] == "outputs") && s[1] == "artifacts":
		// A container component's list of artifacts, which the Go backend knows nothing of: KFP's ArtifactList.
		if list, ok := artifactLists(map[string][]program.Artifact{s[2]: artifacts(env, s[0], s[2])})[s[2]]; ok {
			return list, true, nil
		}
		_, presence := env.Lookup(s)
		return nil, true, &expr.UnresolvedError{Tag: p.tag, Skipped: presence == expr.Skipped}
	case len(s) >= 4 && (s[0] == "inputs" || s[0] == "outputs") && s[1] == "artifacts":
		return l.artifact(p, env)
	case len(s) == 4 && s[0] == "outputs" && s[1] == "parameters" && s[3] == "output_file":
		v, err := lookup(p, env, "outputs", "parameters", s[2], "path")
		return v, true, err
	case len(s) == 2 && s[0] == "outputs" && s[1] == "output_file",
		len(s) == 1 && (s[0] == "output_metadata_uri" || s[0] == "outputMetadataUri"):
		return outputFile(env), true, nil
	case len(s) >= 2 && s[0] == "hooks", len(s) >= 4 && s[0] == "tasks":
		v, err := lookup(p, env, s...)
		return v, true, err
	case len(s) == 1:
		return l.runtime(p, env)
	}
	return l.internal(p, env)
}

// runtime gives facts of the run and the task.
func (l *language) runtime(p placeholder, env expr.Env) (any, bool, error) {
	var path string
	switch p.steps[0] {
	case "pipeline_job_name":
		if v, presence := env.Lookup([]string{"workflow", "title"}); presence == expr.Present && v != "" && v != nil {
			return v, true, nil
		}
		path = "workflow.name"
	case "pipeline_job_resource_name":
		path = "workflow.name"
	case "pipeline_job_uuid":
		path = "workflow.uid"
	case "pipeline_job_create_time_utc":
		path = "workflow.creationTimestamp"
	case "pipeline_job_schedule_time_utc":
		if v, presence := env.Lookup([]string{"workflow", "scheduledTime"}); presence == expr.Present && v != nil && v != "" {
			return instant(v), true, nil
		}
		path = "workflow.creationTimestamp"
	case "pipeline_task_name":
		path = "task.name"
	case "pipeline_task_uuid":
		path = "task.uid"
	case "pipeline_root":
		path = "workflow.artifactRoot"
	case "workspace_path":
		return WorkspacePath, true, nil
	case "claim_name":
		v, err := claimName(p, env)
		return v, true, err
	default:
		return nil, false, nil
	}
	v, err := lookup(p, env, strings.Split(path, ".")...)
	return instant(v), true, err
}

// instant writes a time as KFP does; anything else stays.
func instant(v any) any {
	if t, ok := v.(time.Time); ok {
		return t.UTC().Format(time.RFC3339)
	}
	return v
}

// internal resolves what only the front end writes.
func (l *language) internal(p placeholder, env expr.Env) (any, bool, error) {
	s := p.steps
	switch {
	case s[0] == "scope" && len(s) > 1:
		v, err := lookup(p, env, s[1:]...)
		return v, true, err
	case s[0] == "optional" && len(s) == 2:
		v, presence := env.Lookup([]string{"inputs", "parameters", s[1]})
		if presence != expr.Present || v == nil {
			return "", true, nil
		}
		return normalise(v), true, nil
	case s[0] == "const" && len(s) == 2:
		v, err := unescapeJSON(s[1])
		return v, true, err
	case s[0] == "select" && len(s) > 2:
		src, err := url.QueryUnescape(s[1])
		if err != nil {
			return nil, true, fmt.Errorf("placeholder %s: %w", p.tag, err)
		}
		v, known, err := l.internal(placeholder{tag: p.tag, steps: s[2:]}, env)
		if err != nil || !known {
			return nil, known, err
		}
		v, err = l.Select(src, v)
		return v, true, err
	case s[0] == "final_status" && len(s) == 2:
		v, err := finalStatus(p, env, s[1])
		return v, true, err
	case s[0] == "call_uid" && len(s) == 2:
		v, err := callUID(p, env, s[1])
		return v, true, err
	}
	return nil, false, nil
}

func unescapeJSON(s string) (any, error) {
	raw, err := url.QueryUnescape(s)
	if err != nil {
		return nil, fmt.Errorf("constant %q: %w", short(s), err)
	}
	var v any
	if err := json.Unmarshal([]byte(raw), &v); err != nil {
		return nil, fmt.Errorf("constant %q: %w", short(raw), err)
	}
	return normalise(v), nil
}

// lookup reads a path of the scope.
func lookup(p placeholder, env expr.Env, path ...string) (any, error) {
	v, presence := env.Lookup(path)
	switch presence {
	case expr.Present:
		return normalise(v), nil
	case expr.Skipped:
		return nil, &expr.UnresolvedError{Tag: p.tag, Skipped: true}
	}
	return nil, &expr.UnresolvedError{Tag: p.tag}
}

// finalStatus gives how a task of the same graph ended, as KFP's PipelineTaskFinalStatus.
func finalStatus(p placeholder, env expr.Env, task string) (any, error) {
	status, err := lookup(p, env, "tasks", task, "status")
	if err != nil {
		return nil, err
	}
	run, err := lookup(p, env, "workflow", "name")
	if err != nil {
		return nil, err
	}
	state, failed := finalState(text(status))
	problem := map[string]any{}
	if failed {
		// google.rpc.Code UNKNOWN: the task's own exit code is no RPC code.
		problem["code"] = int64(2)
		if m, presence := env.Lookup([]string{"tasks", task, "message"}); presence == expr.Present && m != nil && m != "" {
			problem["message"] = text(m)
		}
	}
	return map[string]any{
		"state": state, "error": problem, "pipelineTaskName": task, "pipelineJobResourceName": text(run),
	}, nil
}

// finalState gives KFP's word for a phase.
func finalState(phase string) (state string, failed bool) {
	switch phase {
	case "Succeeded":
		return "SUCCEEDED", false
	case "Failed", "Error":
		return "FAILED", true
	case "Skipped", "Omitted":
		return "SKIPPED", false
	}
	return strings.ToUpper(phase), false
}

// claimName is the name of the volume claim that a task makes: the one it is given, else one of its own, derived from the
// run and the task, with the suffix that it is given.
func claimName(p placeholder, env expr.Env) (any, error) {
	name, presence := env.Lookup([]string{"inputs", "parameters", "pvc_name"})
	if presence == expr.Present && name != nil && name != "" {
		return name, nil
	}
	uid, err := lookup(p, env, "task", "uid")
	if err != nil {
		return nil, err
	}
	sum := sha256.Sum256([]byte(text(uid)))
	own := hex.EncodeToString(sum[:16])
	suffix, presence := env.Lookup([]string{"inputs", "parameters", "pvc_name_suffix"})
	if presence == expr.Present && suffix != nil {
		own += text(suffix)
	}
	return own, nil
}

// callUID identifies a call of the graph whose scope this is, before its node exists, as task.uid will do afterwards.
func callUID(p placeholder, env expr.Env, call string) (any, error) {
	uid, err := lookup(p, env, "workflow", "uid")
	if err != nil {
		return nil, err
	}
	name, err := lookup(p, env, "node", "name")
	if err != nil {
		return nil, err
	}
	return text(uid) + "/" + text(name) + "." + call, nil
}
