package kfp

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/sluice-ml/sluice/internal/expr/kfpexpr"
)

// schemaVersion is the only version of the IR that there is, for KFP 2.
const schemaVersion = "2.1.0"

var pipelineName = regexp.MustCompile(`[a-z0-9]`)

// Validate finds everything that is wrong with the pipeline; nil, or an [*InvalidError].
func (p *Pipeline) Validate() error {
	probs := &problems{file: p.Name, places: p.places}
	p.validate(probs)
	return probs.err()
}

func (p *Pipeline) validate(probs *problems) {
	v := &validator{pipeline: p, probs: probs, cel: kfpexpr.NewChecker(), extra: p.extraInputs()}
	v.head()
	for _, n := range sortedKeys(p.Spec.Components) {
		v.component("components."+n, n, p.Spec.Components[n])
	}
	if p.Spec.Root != nil {
		v.component("root", "", p.Spec.Root)
	}
	v.recursion()
	for _, label := range sortedKeys(p.Spec.DeploymentSpec.Executors) {
		v.executor("deploymentSpec.executors."+label, p.Spec.DeploymentSpec.Executors[label])
	}
}

// validator checks a pipeline.
type validator struct {
	pipeline *Pipeline
	probs    *problems
	cel      *kfpexpr.Checker
	extra    map[string]map[string]bool
}

func (v *validator) head() {
	s := &v.pipeline.Spec
	switch {
	case s.SchemaVersion == "":
		v.probs.add("schemaVersion", "compile the pipeline with the kfp SDK 2", "it is missing")
	case s.SchemaVersion != schemaVersion:
		v.probs.add("schemaVersion", "compile the pipeline with the kfp SDK 2", "version %s is not supported, only %s", s.SchemaVersion, schemaVersion)
	}
	if !pipelineName.MatchString(s.PipelineInfo.Name) {
		v.probs.add("pipelineInfo.name", "name the pipeline with lower-case letters, digits and hyphens",
			"%s is no name for a pipeline", quoted(s.PipelineInfo.Name))
	}
	switch {
	case s.Root == nil:
		v.probs.add("root", "compile the pipeline again", "it is missing")
	case s.Root.Dag == nil:
		v.probs.add("root", "compile the pipeline again", "it has no dag")
	}
}

// component checks a component by itself; name is empty for the root.
func (v *validator) component(path, name string, c *ComponentSpec) {
	v.definitions(path, c)
	switch {
	case c.Dag != nil && c.ExecutorLabel != "":
		v.probs.add(path, "remove one of them", "it has both a dag and an executorLabel")
	case c.Dag != nil:
		v.dag(path, c)
	case c.ExecutorLabel != "":
		e := v.pipeline.Spec.DeploymentSpec.Executors[c.ExecutorLabel]
		if e == nil {
			v.probs.add(path+".executorLabel", "name one of deploymentSpec.executors, or add it there",
				"there is no executor %q", c.ExecutorLabel)
			return
		}
		v.texts(path, name, c, e)
	case name != "":
		v.probs.add(path, "give it a dag or an executorLabel", "it has neither a dag nor an executorLabel")
	}
	for i, pt := range c.TaskConfigPassthroughs {
		if !knownSetting(pt.Field) {
			v.probs.add(fmt.Sprintf("%s.taskConfigPassthroughs[%d].field", path, i), "use one of "+strings.Join(settingKinds, ", "),
				"%s is no kind of settings", quoted(pt.Field))
		}
	}
}

func knownSetting(field string) bool {
	if slices.Contains(settingKinds, field) {
		return true
	}
	return field == "NONE" || field == ""
}

// definitions checks the declared inputs and outputs.
func (v *validator) definitions(path string, c *ComponentSpec) {
	for _, n := range sortedKeys(c.InputDefinitions.Parameters) {
		d := c.InputDefinitions.Parameters[n]
		at := path + ".inputDefinitions.parameters." + n
		typ := v.parameterType(at, d.ParameterType, d.Type)
		if d.DefaultValue != nil && d.DefaultValue.JSON != nil {
			if why := mismatch(d.DefaultValue.JSON, typ); why != "" {
				v.probs.add(at+".defaultValue", "give a default of that type", "%s", why)
			} else if !allowed(d.DefaultValue.JSON, d.Literals) {
				v.probs.add(at+".defaultValue", "use one of "+literalList(d.Literals), "%s is none of the literals", brief(d.DefaultValue.JSON))
			}
		}
		for i, l := range d.Literals {
			if why := mismatch(l.JSON, typ); why != "" {
				v.probs.add(fmt.Sprintf("%s.literals[%d]", at, i), "give literals of that type", "%s", why)
			}
		}
	}
	for _, n := range sortedKeys(c.OutputDefinitions.Parameters) {
		d := c.OutputDefinitions.Parameters[n]
		v.parameterType(path+".outputDefinitions.parameters."+n, d.ParameterType, d.Type)
	}
}

// parameterType checks that a parameter has a known type, and gives it.
func (v *validator) parameterType(path, current, deprecated string) string {
	typ := parameterType(current, deprecated)
	if typ == "" {
		given := current
		if given == "" {
			given = deprecated
		}
		v.probs.add(path+".parameterType", "use STRING, NUMBER_INTEGER, NUMBER_DOUBLE, BOOLEAN, LIST or STRUCT",
			"%s is no parameter type", quoted(given))
	}
	return typ
}

// executor checks how something is run.
func (v *validator) executor(path string, e *ExecutorSpec) {
	kinds := 0
	if e.Container != nil {
		kinds++
		if e.Container.Image == "" {
			v.probs.add(path+".container.image", "name the image", "it is missing")
		}
	}
	if e.Importer != nil {
		kinds++
		v.importer(path+".importer", e.Importer)
	}
	if e.Resolver != nil && e.Resolver.JSON != nil {
		kinds++
		v.probs.add(path+".resolver", "give the artifact to the pipeline as an input, or import it", "resolvers need a metadata service to search")
	}
	if e.CustomJob != nil && e.CustomJob.JSON != nil {
		kinds++
		v.probs.add(path+".customJob", "use a container component", "custom jobs run on a managed service only")
	}
	switch {
	case kinds == 0:
		v.probs.add(path, "give it a container or an importer", "it says nothing about how to run")
	case kinds > 1:
		v.probs.add(path, "keep one of them", "it is of several kinds at once")
	}
}

func (v *validator) importer(path string, imp *ImporterSpec) {
	uri := imp.ArtifactURI
	constant := uri.constant()
	if uri.RuntimeParameter == "" && constant == nil {
		v.probs.add(path+".artifactUri", "give a constant or a runtimeParameter", "it is missing")
	}
	if constant != nil {
		s, ok := constant.JSON.(string)
		if !ok || s == "" {
			v.probs.add(path+".artifactUri", "give the URI as a text", "%s is no URI", brief(constant.JSON))
		}
		if strings.HasPrefix(s, "oci://") && imp.TypeSchema.title() != "system.Model" {
			v.probs.add(path+".typeSchema", "import it as a Model", "only a system.Model can lie at an oci:// URI")
		}
	}
	if imp.TypeSchema.title() == "" {
		v.probs.add(path+".typeSchema", "name the artifact's type, system.Artifact for any", "it is missing")
	}
}

// recursion finds components that contain themselves.
func (v *validator) recursion() {
	const visiting, done = 1, 2
	state := map[string]int{}
	var trail []string
	var visit func(name string)
	visit = func(name string) {
		c := v.pipeline.Spec.Components[name]
		if c == nil || c.Dag == nil || state[name] == done {
			return
		}
		if state[name] == visiting {
			v.probs.add("components."+name, "break the circle: a pipeline is finite", "it contains itself: %s", circle(trail, name))
			return
		}
		state[name] = visiting
		trail = append(trail, name)
		for _, t := range sortedKeys(c.Dag.Tasks) {
			visit(c.Dag.Tasks[t].ComponentRef.Name)
		}
		trail = trail[:len(trail)-1]
		state[name] = done
	}
	for _, n := range sortedKeys(v.pipeline.Spec.Components) {
		visit(n)
	}
}

// circle writes the part of a trail from name back to name.
func circle(trail []string, name string) string {
	for i, t := range trail {
		if t == name {
			trail = trail[i:]
			break
		}
	}
	return strings.Join(append(append([]string{}, trail...), name), " -> ")
}

func quoted(s string) string {
	if s == "" {
		return "nothing"
	}
	return fmt.Sprintf("%q", s)
}
