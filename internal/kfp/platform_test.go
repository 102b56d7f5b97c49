package kfp

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sluice-ml/sluice/internal/engine"
	"github.com/sluice-ml/sluice/internal/program"
)

// kubernetes makes a pipeline of one task whose executor has platform settings; its root gives the parameters p (given)
// and none (not given).
func kubernetes(settings string, changes ...string) string {
	ir := build("", `
  inputDefinitions:
    parameters:
      p: {parameterType: STRING}
      j: {parameterType: STRUCT, isOptional: true}
      none: {parameterType: STRING, isOptional: true}
  dag:
    tasks:
      make: {componentRef: {name: other}}
      t: {componentRef: {name: c}, inputs: {parameters: {s: {componentInputParameter: p}}}}
`)
	ir = replaceOnce(ir, "components:\n", `components:
  other: {executorLabel: o, outputDefinitions: {parameters: {o: {parameterType: STRING}}}}
`)
	ir = replaceOnce(ir, "    e: {container: {image: alpine, command: [run]}}", "    o: {container: {image: alpine}}\n    e: {container: {image: alpine, command: [run]}}")
	for i := 0; i < len(changes); i += 2 {
		ir = replaceOnce(ir, changes[i], changes[i+1])
	}
	return ir + "\n---\nplatforms:\n  kubernetes:\n    deploymentSpec:\n      executors:\n        e:\n" + settings
}

func replaceOnce(s, old, with string) string {
	for i := 0; i+len(old) <= len(s); i++ {
		if s[i:i+len(old)] == old {
			return s[:i] + with + s[i+len(old):]
		}
	}
	panic("test: " + old + " is not there")
}

// started gives the command that started the task t.
func started(t *testing.T, ir string, parameters map[string]any) engine.StartTask {
	t.Helper()
	prog, err := load(t, ir).Compile(Options{Parameters: parameters})
	if err != nil {
		t.Fatal(err)
	}
	var found *engine.StartTask
	s := simulate(t, prog, parameters, nil, func(cmd engine.StartTask) engine.Result {
		if cmd.Path == "run-1.t" {
			found = &cmd
		}
		return engine.Result{Phase: engine.SucceededPhase, Outputs: engine.Outputs{Parameters: map[string]any{"o": "made", "l": []any{}}}}
	})
	if found == nil {
		t.Fatalf("the task was not started:\n%s", dump(s))
	}
	return *found
}

func TestPlatformSettings(t *testing.T) {
	for _, c := range []struct {
		name, settings string
		patch          string
		env            []program.EnvVar
		volumes        []program.Volume
		mounts         []program.Mount
	}{
		{"secret as env", `
          secretAsEnv:
          - {secretName: s1, keyToEnv: [{secretKey: k, envVar: A}]}
          - {secretNameParameter: {componentInputParameter: p}, optional: true, keyToEnv: [{secretKey: k, envVar: B}]}
          - {secretNameParameter: {taskOutputParameter: {producerTask: make, outputParameterKey: o}}, keyToEnv: [{secretKey: k, envVar: C}]}
          - {secretNameParameter: {componentInputParameter: none}, keyToEnv: [{secretKey: k, envVar: D}]}
`, `{"containers":[{"name":"main","env":[
			{"name":"A","valueFrom":{"secretKeyRef":{"name":"s1","key":"k","optional":false}}},
			{"name":"B","valueFrom":{"secretKeyRef":{"name":"given","key":"k","optional":true}}},
			{"name":"C","valueFrom":{"secretKeyRef":{"name":"made","key":"k","optional":false}}}]}]}`,
			[]program.EnvVar{
				{Name: "A", Secret: "s1", Key: "k"}, {Name: "B", Secret: "given", Key: "k", Optional: true},
				{Name: "C", Secret: "made", Key: "k", Optional: true}, {Name: "D", Key: "k", Optional: true},
			}, nil, nil},
		{"config map as env, field as env", `
          configMapAsEnv: [{configMapNameParameter: {runtimeValue: {constant: cm}}, keyToEnv: [{configMapKey: k, envVar: A}]}]
          fieldPathAsEnv: [{name: POD, fieldPath: metadata.name}]
`, `{"containers":[{"name":"main","env":[
			{"name":"A","valueFrom":{"configMapKeyRef":{"name":"cm","key":"k","optional":false}}},
			{"name":"POD","valueFrom":{"fieldRef":{"fieldPath":"metadata.name"}}}]}]}`,
			[]program.EnvVar{{Name: "A", ConfigMap: "cm", Key: "k", Optional: true}, {Name: "POD", Field: "metadata.name"}}, nil, nil},
		{"volumes", `
          secretAsVolume: [{secretName: s, mountPath: /s, optional: true}]
          configMapAsVolume: [{configMapNameParameter: {componentInputParameter: p}, mountPath: /c}]
          pvcMount: [{componentInputParameter: p, pvcNameParameter: {componentInputParameter: p}, mountPath: /d, subPath: x}, {constant: claim, mountPath: /e}]
          emptyDirMounts: [{volumeName: tmp, mountPath: /t, medium: Memory, sizeLimit: 1Gi}]
          enabledSharedMemory: {size: 2Gi}
          genericEphemeralVolume: [{volumeName: eph, mountPath: /g, accessModes: [ReadWriteOnce], size: 1Gi, defaultStorageClass: true}]
`, `{"containers":[{"name":"main","volumeMounts":[{"name":"secret-0","mountPath":"/s"},{"name":"configmap-0","mountPath":"/c"},
			{"name":"pvc-0","mountPath":"/d","subPath":"x"},{"name":"pvc-1","mountPath":"/e"},{"name":"tmp","mountPath":"/t"},{"name":"shm","mountPath":"/dev/shm"},
			{"name":"eph","mountPath":"/g"}]}],
			"volumes":[{"name":"secret-0","secret":{"secretName":"s","optional":true}},{"name":"configmap-0","configMap":{"name":"given","optional":false}},
			{"name":"pvc-0","persistentVolumeClaim":{"claimName":"given"}},{"name":"pvc-1","persistentVolumeClaim":{"claimName":"claim"}},
			{"name":"tmp","emptyDir":{"medium":"Memory","sizeLimit":"1Gi"}},{"name":"shm","emptyDir":{"medium":"Memory","sizeLimit":"2Gi"}},
			{"name":"eph","ephemeral":{"volumeClaimTemplate":{"spec":{"accessModes":["ReadWriteOnce"],"resources":{"requests":{"storage":"1Gi"}}}}}}]}`,
			nil,
			[]program.Volume{
				{Name: "secret-0", Kind: "secret", Source: "s", Optional: true}, {Name: "configmap-0", Kind: "configMap", Source: "given", Optional: true},
				{Name: "pvc-0", Kind: "claim", Source: "given"}, {Name: "pvc-1", Kind: "claim", Source: "claim"},
				{Name: "tmp", Kind: "emptyDir"}, {Name: "shm", Kind: "emptyDir"}, {Name: "eph", Kind: "emptyDir"},
			},
			[]program.Mount{
				{Volume: "secret-0", Path: "/s", ReadOnly: true}, {Volume: "configmap-0", Path: "/c", ReadOnly: true},
				{Volume: "pvc-0", Path: "/d", SubPath: "x"}, {Volume: "pvc-1", Path: "/e"}, {Volume: "tmp", Path: "/t"}, {Volume: "shm", Path: "/dev/shm"},
				{Volume: "eph", Path: "/g"},
			}},
		{"scheduling", `
          nodeSelector: {nodeSelectorJson: {componentInputParameter: j}}
          tolerations:
          - {key: k, operator: Exists, effect: NoSchedule, tolerationSeconds: 5}
          - {tolerationJson: {runtimeValue: {constant: [{key: a}, {key: b}]}}}
          - {tolerationJson: {componentInputParameter: none}}
          nodeAffinity:
          - {matchExpressions: [{key: k, operator: In, values: [v]}]}
          - {matchFields: [{key: f, operator: Exists}], weight: 10}
          podAffinity: [{matchPodLabels: {app: x}, topologyKey: host, anti: true, namespaces: [n]}]
          imagePullSecret: [{secretName: s}, {secretNameParameter: {componentInputParameter: none}}]
          imagePullPolicy: Always
          securityContext: {runAsUser: 1000, runAsNonRoot: true}
          initContainers: [{name: i, image: busybox, command: [sh], restartPolicy: Always, resources: {limits: {cpu: "1"}}}]
`, `{"activeDeadlineSeconds":null,"nodeSelector":{"disk":"ssd"},
			"tolerations":[{"key":"k","operator":"Exists","effect":"NoSchedule","tolerationSeconds":5},{"key":"a"},{"key":"b"}],
			"affinity":{"nodeAffinity":{"requiredDuringSchedulingIgnoredDuringExecution":{"nodeSelectorTerms":[{"matchExpressions":[{"key":"k","operator":"In","values":["v"]}]}]},
			"preferredDuringSchedulingIgnoredDuringExecution":[{"weight":10,"preference":{"matchFields":[{"key":"f","operator":"Exists"}]}}]},
			"podAntiAffinity":{"requiredDuringSchedulingIgnoredDuringExecution":[{"topologyKey":"host","labelSelector":{"matchLabels":{"app":"x"}},"namespaces":["n"]}]}},
			"imagePullSecrets":[{"name":"s"}],"initContainers":[{"name":"i","image":"busybox","command":["sh"],"restartPolicy":"Always","resources":{"limits":{"cpu":"1"}}}],
			"containers":[{"name":"main","imagePullPolicy":"Always","securityContext":{"runAsUser":1000,"runAsNonRoot":true}}]}`, nil, nil, nil},
		{"nothing is left of what is not given", `
          nodeSelector: {nodeSelectorJson: {componentInputParameter: none}}
          imagePullSecret: [{secretNameParameter: {componentInputParameter: none}}]
`, ``, nil, nil, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			cmd := started(t, kubernetes(c.settings), map[string]any{"p": "given", "j": map[string]any{"disk": "ssd"}})
			main := cmd.Body.Containers[0]
			if diff := cmp.Diff(tree(t, c.patch), tree(t, cmd.Body.Patch)); diff != "" {
				t.Errorf("patch: -want +got:\n%s", diff)
			}
			for what, diff := range map[string]string{
				"env": cmp.Diff(c.env, main.Env), "volumes": cmp.Diff(c.volumes, cmd.Body.Volumes), "mounts": cmp.Diff(c.mounts, main.Mounts),
			} {
				if diff != "" {
					t.Errorf("%s: -want +got:\n%s", what, diff)
				}
			}
		})
	}
}

// tree reads JSON; fields that are null are left out.
func tree(t *testing.T, s string) any {
	t.Helper()
	if s == "" {
		return nil
	}
	var v any
	if err := json.Unmarshal([]byte(s), &v); err != nil {
		t.Fatalf("%v: %s", err, s)
	}
	if m, ok := v.(map[string]any); ok {
		for k, e := range m {
			if e == nil {
				delete(m, k)
			}
		}
	}
	return v
}

func TestPodMetadataAndDeadline(t *testing.T) {
	cmd := started(t, kubernetes(`
          podMetadata: {labels: {a: b}, annotations: {c: d}}
          activeDeadlineSeconds: 30
`), map[string]any{"p": "x"})
	if cmd.Labels["a"] != "b" || cmd.Annotations["c"] != "d" || cmd.Timeout.Seconds() != 30 {
		t.Errorf("labels %v, annotations %v, timeout %s", cmd.Labels, cmd.Annotations, cmd.Timeout)
	}
}

func TestHiddenInputsAreHidden(t *testing.T) {
	ir := kubernetes(`
          secretAsEnv: [{secretNameParameter: {componentInputParameter: p}, keyToEnv: [{secretKey: k, envVar: A}]}]
`, "command: [run]", "command: [run, '{{$}}']")
	cmd := started(t, ir, map[string]any{"p": "given"})
	var input struct {
		Inputs struct{ ParameterValues map[string]any }
	}
	if err := json.Unmarshal([]byte(cmd.Body.Containers[0].Command[1]), &input); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(map[string]any{"s": "given", "d": "dflt", "status": input.Inputs.ParameterValues["status"]}, input.Inputs.ParameterValues); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestTaskConfig(t *testing.T) {
	ir := kubernetes(`
          secretAsEnv: [{secretNameParameter: {componentInputParameter: p}, keyToEnv: [{secretKey: k, envVar: A}]}]
          nodeSelector: {labels: {disk: ssd}}
          pvcMount: [{constant: claim, mountPath: /d}]
          tolerations: [{key: k}]
`, "    executorLabel: e\n", `    executorLabel: e
    taskConfigPassthroughs: [{field: RESOURCES}, {field: ENV, applyToTask: true}, {field: KUBERNETES_NODE_SELECTOR}, {field: KUBERNETES_VOLUMES}]
`, "        s: {parameterType: STRING, isOptional: true}", "        s: {parameterType: STRING, isOptional: true}\n        config: {parameterType: TASK_CONFIG, isOptional: true}",
		"command: [run]", "command: [run], env: [{name: OWN, value: \"{{$.inputs.parameters['s']}}\"}], resources: {resourceCpuLimit: \"{{$.inputs.parameters['s']}}\", memoryLimit: 0.5}")
	cmd := started(t, ir, map[string]any{"p": "given"})
	want := map[string]any{
		"resources":    map[string]any{"limits": map[string]any{"cpu": "given", "memory": "0.5G"}},
		"env":          []any{map[string]any{"name": "A", "valueFrom": map[string]any{"secretKeyRef": map[string]any{"name": "given", "key": "k", "optional": false}}}, map[string]any{"name": "OWN", "value": "given"}},
		"nodeSelector": map[string]any{"disk": "ssd"},
		"volumes":      []any{map[string]any{"name": "pvc-0", "persistentVolumeClaim": map[string]any{"claimName": "claim"}}},
		"volumeMounts": []any{map[string]any{"name": "pvc-0", "mountPath": "/d"}},
	}
	if diff := cmp.Diff(want, cmd.Inputs.Parameters["config"]); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	main := cmd.Body.Containers[0]
	if main.CPULimit != "" || main.MemoryLimit != "" || len(main.Mounts) != 0 || len(main.Env) != 2 {
		t.Errorf("what is only passed through is applied: %+v", main)
	}
	wantPatch := `{"tolerations":[{"key":"k"}],"containers":[{"name":"main","env":[{"name":"A","valueFrom":{"secretKeyRef":{"name":"given","key":"k","optional":false}}}]}]}`
	if diff := cmp.Diff(tree(t, wantPatch), tree(t, cmd.Body.Patch)); diff != "" {
		t.Errorf("patch: -want +got:\n%s", diff)
	}
}

func TestContainer(t *testing.T) {
	ir := kubernetes("          imagePullPolicy: Never\n", "{image: alpine, command: [run]}", `{image: "{{$.inputs.parameters['s']}}", command: [run], args: ["{{$.outputs.artifacts['a'].path}}"],
      env: [{name: A, value: b}], resources: {cpuLimit: 1.5, memoryLimit: 2.0, cpuRequest: 0.5, resourceMemoryRequest: 1Gi, accelerator: {count: "2", type: nvidia.com/gpu}}}`)
	cmd := started(t, ir, map[string]any{"p": "img"})
	main := cmd.Body.Containers[0]
	if main.Image != "img" || main.CPULimit != "1.5" || main.MemoryLimit != "2G" || main.Args[0] != cmd.OutputArtifacts["a"].URI {
		t.Errorf("got %+v", main)
	}
	wantRaw := `{"name":"main","image":"img","env":[{"name":"A","value":"b"}],"resources":{"limits":{"cpu":"1.5","memory":"2G","nvidia.com/gpu":"2"},"requests":{"cpu":"0.5","memory":"1Gi"}}}`
	if diff := cmp.Diff(tree(t, wantRaw), tree(t, string(main.Raw))); diff != "" {
		t.Errorf("raw: -want +got:\n%s", diff)
	}
}

func TestWorkspace(t *testing.T) {
	ir := kubernetes("          imagePullPolicy: Never\n") + `
    pipelineConfig:
      workspace: {size: 1Gi, kubernetes: {pvcSpecPatch: {storageClassName: fast}}}
      resourceTtlOnCompletion: 60
`
	p := load(t, ir)
	wantPod := `{"ttlStrategy":{"secondsAfterCompletion":60},"volumeClaimTemplates":[{"metadata":{"name":"kfp-workspace"},
		"spec":{"accessModes":["ReadWriteOnce"],"storageClassName":"fast","resources":{"requests":{"storage":"1Gi"}}}}]}`
	if diff := cmp.Diff(tree(t, wantPod), tree(t, string(p.WorkflowSettings()))); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	cmd := started(t, ir, map[string]any{"p": "/kfp-workspace/x"})
	if diff := cmp.Diff([]program.Volume{{Name: "kfp-workspace", Kind: "claim", Source: "run-1-kfp-workspace"}}, cmd.Body.Volumes); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if diff := cmp.Diff([]program.Mount{{Volume: "kfp-workspace", Path: "/kfp-workspace"}}, cmd.Body.Containers[0].Mounts); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	// A component that is given nothing and does not name it has no workspace.
	prog, err := p.Compile(Options{Lint: true})
	if err != nil {
		t.Fatal(err)
	}
	if v := prog.Templates["local/other"].Task.Volumes; len(v) != 0 {
		t.Errorf("the other component mounts %v", v)
	}
}

func TestClaims(t *testing.T) {
	ir := change(t, hello, "image: alpine", "image: argostub/createpvc", "args: [\"{{$.inputs.parameters['text']}}\"]", "",
		"text: {parameterType: STRING}", "text: {parameterType: STRING}\n        pvc_name_suffix: {parameterType: STRING, isOptional: true, defaultValue: -x}\n        size: {parameterType: STRING, isOptional: true, defaultValue: 1Gi}\n        access_modes: {parameterType: LIST, isOptional: true, defaultValue: [ReadWriteOnce]}")
	prog, err := load(t, ir).Compile(Options{Parameters: map[string]any{"message": "m"}})
	if err != nil {
		t.Fatal(err)
	}
	var manifests []any
	s := simulate(t, prog, map[string]any{"message": "m"}, nil, func(cmd engine.StartTask) engine.Result {
		var r struct{ Action, Manifest string }
		if err := json.Unmarshal(cmd.Body.Resource, &r); err != nil || r.Action != "create" || cmd.Body.Kind != program.Resource {
			t.Fatalf("%v: %+v", err, cmd.Body)
		}
		manifests = append(manifests, tree(t, r.Manifest))
		if cmd.Outputs.Parameters[0].JSONPath != "{.metadata.name}" || cmd.Outputs.Parameters[0].Path != "" {
			t.Errorf("its output is %+v", cmd.Outputs.Parameters[0])
		}
		return engine.Result{Phase: engine.SucceededPhase, Outputs: engine.Outputs{Parameters: map[string]any{"Output": "x"}}}
	})
	if len(manifests) != 2 {
		t.Fatalf("%d claims are made:\n%s", len(manifests), dump(s))
	}
	name := manifests[0].(map[string]any)["metadata"].(map[string]any)["name"].(string)
	want := tree(t, `{"apiVersion":"v1","kind":"PersistentVolumeClaim","metadata":{"name":"`+name+`"},"spec":{"accessModes":["ReadWriteOnce"],"resources":{"requests":{"storage":"1Gi"}}}}`)
	if diff := cmp.Diff(want, manifests[0]); diff != "" || len(name) < 10 || name[len(name)-2:] != "-x" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// What deletes a claim does not wait for its end: pods that have ended may hold it as long as the run is kept.
func TestClaimDeleted(t *testing.T) {
	ir := change(t, hello, "image: alpine", "image: docker.io/argostub/deletepvc")
	prog, err := load(t, ir).Compile(Options{Lint: true})
	if err != nil {
		t.Fatal(err)
	}
	deletes := 0
	for _, template := range prog.Templates {
		if template.Task == nil || template.Task.Kind != program.Resource {
			continue
		}
		deletes++
		var r struct {
			Action string
			Flags  []string
		}
		if err := json.Unmarshal(template.Task.Resource, &r); err != nil || r.Action != "delete" || len(r.Flags) != 1 || r.Flags[0] != "--wait=false" {
			t.Errorf("%v: got %s", err, template.Task.Resource)
		}
	}
	if deletes != 1 {
		t.Errorf("%d templates delete claims, want 1", deletes)
	}
}

func TestImporter(t *testing.T) {
	ir := build(`
  imp:
    executorLabel: i
    inputDefinitions: {parameters: {uri: {parameterType: STRING}, k: {parameterType: STRING}}}
    outputDefinitions: {artifacts: {artifact: {artifactType: {schemaTitle: system.Dataset}}}}
`, `
  dag:
    tasks:
      i: {componentRef: {name: imp}, inputs: {parameters: {uri: {runtimeValue: {constant: "gs://b/x"}}, k: {runtimeValue: {constant: key}}}}}
`)
	ir = replaceOnce(ir, "    e: {container", `    i:
      importer:
        artifactUri: {runtimeParameter: uri}
        typeSchema: {schemaTitle: system.Dataset}
        reimport: true
        metadata: {"{{$.inputs.parameters['k']}}": ["p-{{$.inputs.parameters['k']}}", 1.0]}
    e: {container`)
	prog, err := load(t, ir).Compile(Options{})
	if err != nil {
		t.Fatal(err)
	}
	var got *program.Import
	simulate(t, prog, nil, nil, func(cmd engine.StartTask) engine.Result {
		got = cmd.Body.Import
		return engine.Result{Phase: engine.SucceededPhase, Outputs: engine.Outputs{Artifacts: map[string][]program.Artifact{"artifact": {{URI: *got.URI.Text}}}}}
	})
	uri := "gs://b/x"
	want := &program.Import{
		URI: program.Binding{Text: &uri}, Type: "system.Dataset", Reimport: true, Output: "artifact",
		Metadata: map[string]any{"key": []any{"p-key", int64(1)}},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}
