package kfp

import (
	"maps"

	"github.com/sluice-ml/sluice/internal/program"
)

// scheduling says on which nodes the pod may run.
func (s *settings) scheduling() {
	k := s.config
	if n := k.NodeSelector; n != nil {
		var v any = n.Labels
		if n.NodeSelectorJSON != nil {
			v = map[string]any{"$parameter": hidden("nodeSelector", 0)}
		}
		if s.set["KUBERNETES_NODE_SELECTOR"] {
			s.pod["nodeSelector"] = v
		}
		if s.passes("KUBERNETES_NODE_SELECTOR") {
			s.giveOne("nodeSelector", v)
		}
	}
	for i, t := range k.Tolerations {
		s.podList("KUBERNETES_TOLERATIONS", "tolerations", toleration(i, t))
	}
	if a := s.affinity(); len(a) > 0 {
		if s.set["KUBERNETES_AFFINITY"] {
			s.pod["affinity"] = a
		}
		if s.passes("KUBERNETES_AFFINITY") {
			s.giveOne("affinity", a)
		}
	}
}

func (s *settings) giveOne(field string, v any) {
	if s.given == nil {
		s.given = map[string]any{}
	}
	s.given[field] = v
}

func toleration(i int, t Toleration) map[string]any {
	if t.TolerationJSON != nil {
		return map[string]any{"$parameter": hidden("tolerations", i), "$list": true}
	}
	out := map[string]any{}
	for name, v := range map[string]string{"key": t.Key, "operator": t.Operator, "value": t.Value, "effect": t.Effect} {
		if v != "" {
			out[name] = v
		}
	}
	if t.TolerationSeconds != nil {
		out["tolerationSeconds"] = *t.TolerationSeconds
	}
	return out
}

// affinity gives Kubernetes' form: preferred terms have a weight, required ones none.
func (s *settings) affinity() map[string]any {
	out := map[string]any{}
	node := map[string]any{}
	for i, n := range s.config.NodeAffinity {
		if n.NodeAffinityJSON != nil {
			// The parameter holds a whole nodeAffinity.
			out["nodeAffinity"] = map[string]any{"$parameter": hidden("nodeAffinity", i)}
			continue
		}
		term := map[string]any{}
		if len(n.MatchExpressions) > 0 {
			term["matchExpressions"] = requirements(n.MatchExpressions)
		}
		if len(n.MatchFields) > 0 {
			term["matchFields"] = requirements(n.MatchFields)
		}
		if n.Weight != nil {
			preferred(node, *n.Weight, "preference", term)
			continue
		}
		required, _ := node["requiredDuringSchedulingIgnoredDuringExecution"].(map[string]any)
		node["requiredDuringSchedulingIgnoredDuringExecution"] = map[string]any{
			"nodeSelectorTerms": append(list(required["nodeSelectorTerms"]), term),
		}
	}
	if len(node) > 0 {
		out["nodeAffinity"] = node
	}
	for _, p := range s.config.PodAffinity {
		side := "podAffinity"
		if p.Anti {
			side = "podAntiAffinity"
		}
		m, _ := out[side].(map[string]any)
		if m == nil {
			m = map[string]any{}
			out[side] = m
		}
		if p.Weight != nil {
			preferred(m, *p.Weight, "podAffinityTerm", podTerm(p))
			continue
		}
		const field = "requiredDuringSchedulingIgnoredDuringExecution"
		m[field] = append(list(m[field]), podTerm(p))
	}
	return out
}

func preferred(m map[string]any, weight int64, name string, term map[string]any) {
	const field = "preferredDuringSchedulingIgnoredDuringExecution"
	m[field] = append(list(m[field]), map[string]any{"weight": weight, name: term})
}

func podTerm(p PodAffinity) map[string]any {
	out := map[string]any{"topologyKey": p.TopologyKey}
	if s := selector(p.MatchPodExpressions, p.MatchPodLabels); s != nil {
		out["labelSelector"] = s
	}
	if s := selector(p.MatchNamespaceExpressions, p.MatchNamespaceLabels); s != nil {
		out["namespaceSelector"] = s
	}
	if len(p.Namespaces) > 0 {
		out["namespaces"] = p.Namespaces
	}
	return out
}

func selector(expressions []SelectorRequirement, labels map[string]string) map[string]any {
	out := map[string]any{}
	if len(expressions) > 0 {
		out["matchExpressions"] = requirements(expressions)
	}
	if len(labels) > 0 {
		out["matchLabels"] = labels
	}
	if len(out) == 0 {
		return nil
	}
	return out
}

func requirements(list []SelectorRequirement) []any {
	out := make([]any, len(list))
	for i, r := range list {
		m := map[string]any{"key": r.Key, "operator": r.Operator}
		if len(r.Values) > 0 {
			m["values"] = r.Values
		}
		out[i] = m
	}
	return out
}

// withhold takes resources and environment that are only passed through off the container.
func (s *settings) withhold() {
	main := &s.body.Containers[0]
	raw := map[string]any{"name": main.Name, "image": main.Image}
	if s.set["RESOURCES"] {
		if r := s.rawField("resources"); r != nil {
			raw["resources"] = r
		}
	} else {
		main.CPULimit, main.MemoryLimit = "", ""
	}
	if s.set["ENV"] {
		if e := s.rawField("env"); e != nil {
			raw["env"] = e
		}
	} else {
		main.Env = nil
	}
	main.Raw = toJSON(raw)
}

// rawField reads a field of the container in Kubernetes' form.
func (s *settings) rawField(name string) any {
	docs, err := documents(s.body.Containers[0].Raw)
	if err != nil || len(docs) != 1 {
		return nil
	}
	m, _ := docs[0].value.(map[string]any)
	return m[name]
}

// taskConfig fills the component's TASK_CONFIG parameter with the settings that are passed through. It is an input's
// Value, because the settings' own placeholders mean the task's inputs, and the last of them, so that all others have
// their values by then.
func (s *settings) taskConfig(t *program.Template) {
	var others, configs []program.Input
	for _, in := range t.Inputs.Parameters {
		if in.Type != program.Config {
			others = append(others, in)
			continue
		}
		given := map[string]any{}
		maps.Copy(given, s.given)
		in.Value = &program.Binding{Expr: patchText(given)}
		configs = append(configs, in)
	}
	t.Inputs.Parameters = append(others, configs...)
}

// passContainer passes the container's own environment and resources through.
func (s *settings) passContainer(spec *ContainerSpec) {
	if s.passes("RESOURCES") {
		if r := resources(spec.Resources); r != nil {
			s.giveOne("resources", r)
		}
	}
	for _, e := range spec.Env {
		s.give("ENV", "env", map[string]any{"name": e.Name, "value": e.Value})
	}
}
