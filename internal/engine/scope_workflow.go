package engine

import (
	"encoding/json"
	"strconv"
	"strings"

	"github.com/sluice-ml/sluice/internal/expr"
)

// workflow is what everything can read of the run.
func (sc *scope) workflow(path []string) (any, expr.Presence) {
	s, p := sc.x.s, sc.x.m.program
	if len(path) == 0 {
		out := map[string]any{}
		for _, f := range []string{
			"name", "namespace", "uid", "mainEntrypoint", "serviceAccountName", "status", "duration", "parameters",
			"labels", "annotations", "outputs", "creationTimestamp", "failures",
		} {
			if v, pr := sc.workflow([]string{f}); pr == expr.Present {
				out[f] = v
			}
		}
		return out, expr.Present
	}
	rest := path[1:]
	switch path[0] {
	case "parameters":
		if len(rest) > 0 {
			if v, ok := s.Parameters[rest[0]]; ok {
				return descend(v, rest[1:])
			}
			return dotted(s.Parameters, rest)
		}
		return orEmpty(s.Parameters), expr.Present
	case "artifacts":
		if len(rest) > 0 {
			if list, ok := s.Artifacts[rest[0]]; ok {
				return descend(list, rest[1:])
			}
			return nil, expr.Skipped
		}
	case "labels":
		return labelled(s.Run.Labels, rest)
	case "annotations":
		return labelled(s.Run.Annotations, rest)
	case "outputs":
		return sc.workflowOutputs(rest)
	}
	if len(rest) > 0 { // forms of a time (creationTimestamp.Y) are the language's business
		return nil, expr.Absent
	}
	switch path[0] {
	case "creationTimestamp":
		return s.Run.Created, expr.Present
	case "scheduledTime":
		if s.Run.Scheduled == nil {
			return nil, expr.Absent
		}
		return stamp(*s.Run.Scheduled), expr.Present
	case "name":
		return s.Run.Name, expr.Present
	case "namespace":
		return s.Run.Namespace, expr.Present
	case "uid":
		return s.Run.UID, expr.Present
	case "title":
		return or(s.Run.Title, s.Run.Name), expr.Present
	case "artifactRoot":
		return s.Run.ArtifactRoot, expr.Present
	case "mainEntrypoint":
		return p.Entry.Template.Name, expr.Present
	case "serviceAccountName":
		return or(p.ServiceAccount, "default"), expr.Present
	case "priority":
		if p.Priority == nil {
			return nil, expr.Absent
		}
		return strconv.Itoa(int(*p.Priority)), expr.Present
	case "status":
		return sc.runStatus(), expr.Present
	case "duration":
		end := s.Finished
		if end.IsZero() {
			end = sc.x.now
		}
		return strconv.FormatFloat(end.Sub(s.Started).Seconds(), 'f', 6, 64), expr.Present
	case "failures":
		return sc.x.failures(), expr.Present
	}
	return nil, expr.Absent
}

// runStatus is the phase of the run, or how its root ended while exit handlers run.
func (sc *scope) runStatus() string {
	if sc.status != "" && sc.frame == nil && sc.leaf == nil {
		return sc.status
	}
	s := sc.x.s
	if root := s.Node(s.Root); root != nil && root.Stage == StageDone {
		return string(sc.x.outcome(root))
	}
	return string(s.Phase)
}

func (sc *scope) workflowOutputs(path []string) (any, expr.Presence) {
	out := &sc.x.s.Outputs
	if len(path) == 0 {
		return map[string]any{"parameters": orEmpty(out.Parameters), "artifacts": listsOf(out.Artifacts)}, expr.Present
	}
	switch path[0] {
	case "parameters":
		if len(path) == 1 {
			return orEmpty(out.Parameters), expr.Present
		}
		if v, ok := out.Parameters[path[1]]; ok {
			return descend(v, path[2:])
		}
		return nil, expr.Skipped
	case "artifacts":
		if len(path) == 1 {
			return listsOf(out.Artifacts), expr.Present
		}
		list, ok := out.Artifacts[path[1]]
		if !ok {
			return nil, expr.Skipped
		}
		return descend(list, path[2:])
	}
	return nil, expr.Absent
}

func labelled(m map[string]string, path []string) (any, expr.Presence) {
	if len(path) == 0 {
		return anyMap(m), expr.Present
	}
	// Keys of labels have dots and slashes.
	if v, ok := m[strings.Join(path, ".")]; ok {
		return v, expr.Present
	}
	return nil, expr.Absent
}

// failures lists the tasks that failed, as a JSON text; it is computed when it is read.
func (x *step) failures() string {
	type failure struct {
		DisplayName  string `json:"displayName"`
		Message      string `json:"message"`
		TemplateName string `json:"templateName"`
		Phase        string `json:"phase"`
		PodName      string `json:"podName"`
		FinishedAt   string `json:"finishedAt"`
	}
	var list []failure // without any it is null, as upstream's
	for _, id := range x.s.failed {
		n := x.s.Node(id)
		if n == nil || !n.Phase.Bad() {
			continue
		}
		f := failure{DisplayName: n.Name, Message: n.Message, Phase: string(n.Phase), FinishedAt: stamp(n.Finished)}
		if n.template != nil {
			f.TemplateName, f.PodName = n.template.Name, x.podName(n)
		}
		list = append(list, f)
	}
	data, err := json.Marshal(list)
	if err != nil {
		return "null"
	}
	return string(data)
}
