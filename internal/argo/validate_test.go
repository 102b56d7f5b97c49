package argo

import (
	"strings"
	"testing"
)

// What Argo's own lint refuses is an error here, what it finds only at run time a warning.
func TestErrorsAndWarnings(t *testing.T) {
	one := func(template string) string {
		return head + "spec:\n  entrypoint: a\n  templates:\n  - name: a\n    " + template
	}
	cron := func(spec string) string {
		return "apiVersion: argoproj.io/v1alpha1\nkind: CronWorkflow\nmetadata: {name: x}\nspec: {" + spec +
			", workflowSpec: {entrypoint: a, templates: [{name: a, container: {image: x}}]}}"
	}
	call := func(argument string) string {
		return head + "spec:\n  entrypoint: a\n  templates:\n  - {name: a, dag: {tasks: [{name: t, template: b, arguments: {parameters: [{name: p, " + argument +
			"}]}}]}}\n  - {name: b, inputs: {parameters: [{name: p}]}, container: {image: x}}"
	}
	hdfs := func(fields string) string {
		return one("{name: a, container: {image: x}, inputs: {artifacts: [{name: i, path: /x, hdfs: {" + fields + "}}]}}")
	}
	for _, c := range []struct {
		name, src, want string
		warning         bool
	}{
		{"unknown form of a time", one("container: {image: x, args: ['{{workflow.creationTimestamp.nonsense}}']}"), "failed to resolve {{workflow.creationTimestamp.nonsense}}; forms of a time are", false},
		{"part of a number", one("container: {image: x, args: ['{{workflow.duration.x}}']}"), "failed to resolve {{workflow.duration.x}}", false},
		{"letters glued to a name", one("container: {image: x, args: ['{{workflow.creationTimestampX}}']}"), "failed to resolve {{workflow.creationTimestampX}}", false},
		{"unclosed tag", one("container: {image: x, args: ['{{inputs.parameters.a']}"), `"{{inputs.parameters.a" is never closed`, false},
		{"schedule", cron("schedules: ['99 * * * *']"), "is not a schedule", false},
		{"time zone", cron("schedules: ['* * * * *'], timezone: Europe/Zuric"), "is not a time zone", false},
		{"argument from an expression", call("valueFrom: {expression: '1'}"), "arguments.parameters[0].valueFrom: may only have", false},
		{"argument from a default alone", call("valueFrom: {default: '1'}"), "arguments.parameters[0].valueFrom: must have", false},
		{"template by a placeholder", head + "spec: {entrypoint: a, templates: [{name: a, steps: [[{name: s, template: '{{item}}', withItems: [b]}]]}, {name: b, container: {image: x}}]}",
			`template: "{{item}}" is not known before the run`, false},
		{"artifact argument from an expression", head + "spec: {entrypoint: a, templates: [{name: a, steps: [[{name: s, template: b, arguments: {artifacts: [{name: i, fromExpression: inputs.artifacts.x}]}}]]}, " +
			"{name: b, inputs: {artifacts: [{name: i, path: /i}]}, container: {image: x}}]}", "arguments.artifacts[0]: may not come from an expression", false},
		{"label value", head + "spec: {entrypoint: a, workflowMetadata: {labels: {team: 'no label'}}, templates: [{name: a, container: {image: x}}]}",
			`workflowMetadata.labels.team: "no label" is not a label's value`, false},
		{"no name node", hdfs("path: /x, hdfsUser: u"), "hdfs.addresses: is missing", false},
		{"relative path", hdfs("path: x, addresses: [a], hdfsUser: u"), `hdfs.path: "x" must begin with a slash`, false},
		{"nobody", hdfs("path: /x, addresses: [a]"), "hdfs: does not say as whom", false},
		{"half of Kerberos", hdfs("path: /x, addresses: [a], krbCCacheSecret: {name: s, key: k}"), "hdfs: must have krbServicePrincipalName", false},
		{"expression", one("container: {image: x, args: ['{{=1 +}}']}"), "args[0]", true},
		{"duration", one("{name: a, container: {image: x}, memoize: {key: k, maxAge: soon, cache: {configMap: {name: c, key: k}}}}"), "is not a duration", true},
		{"list of a loop", head + "spec: {entrypoint: a, templates: [{name: a, steps: [[{name: s, template: b, withParam: nolist}]]}, {name: b, container: {image: x}}]}", "withParam: ", true},
	} {
		src := strings.ReplaceAll(c.src, "- name: a\n    {name: a, ", "- {name: a, ")
		b, err := Load(Source{Name: "wf.yaml", Data: []byte(src)}, nil)
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		found := false
		for _, p := range b.Lint(Options{}) {
			if strings.Contains(p.Error(), c.want) || c.warning && strings.Contains(p.Path+p.Message, c.want) {
				found = true
				if p.Warning != c.warning {
					t.Errorf("%s: warning is %t of %v", c.name, p.Warning, p)
				}
			}
		}
		if !found {
			t.Errorf("%s: got %v, want %s", c.name, b.Lint(Options{}), c.want)
		}
	}
}

// A workflow's argument that has but a default is none to Argo, until the submission gives a value.
func TestArgumentsWithADefaultAlone(t *testing.T) {
	b, err := Load(Source{Name: "wf.yaml", Data: []byte(head + "spec: {entrypoint: a, arguments: {parameters: [{name: p, default: x}]}, templates: [{name: a, container: {image: x}}]}")}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if message, invalid := b.Validate(Options{}).InvalidSpec(); !invalid || !strings.Contains(message, "spec.arguments.p.value or spec.arguments.p.valueFrom is required") {
		t.Errorf("got %q", message)
	}
	if problems := b.Validate(Options{Parameters: map[string]string{"p": "y"}}); problems.errOrNil() != nil {
		t.Error(problems)
	}
}

// Every form of a time that Argo knows is taken, and what is not Argo's is left alone.
func TestPlaceholdersThatAreTaken(t *testing.T) {
	for _, text := range []string{
		"workflow.creationTimestamp", "workflow.creationTimestamp.s", "workflow.creationTimestamp.RFC3339", "workflow.duration", "workflow.scheduledTime",
		"workflow.creationTimestamp.B", "workflow.creationTimestamp.b", "workflow.creationTimestamp.m", "workflow.creationTimestamp.A",
		"workflow.creationTimestamp.a", "workflow.creationTimestamp.d", "workflow.creationTimestamp.H", "workflow.creationTimestamp.I",
		"workflow.creationTimestamp.M", "workflow.creationTimestamp.S", "workflow.creationTimestamp.Y", "workflow.creationTimestamp.y",
		"workflow.creationTimestamp.p", "workflow.creationTimestamp.Z", "workflow.creationTimestamp.z", "workflow.creationTimestamp.L", "some.other.tool",
	} {
		if got := lint(t, head+"spec: {entrypoint: a, templates: [{name: a, container: {image: x, args: ['{{"+text+"}}', '{{ others', '{{.Values.x']}}]}"); got != "" {
			t.Errorf("%s: %s", text, got)
		}
	}
}
