package kfpcheck

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"

	"sigs.k8s.io/yaml"
)

// Pipeline is the part of the compiled IR that says which task runs when. It is read here anew, on purpose: the checks
// share no code with the program under test.
type Pipeline struct {
	Root       Component            `json:"root"`
	Components map[string]Component `json:"components"`
	Deployment struct {
		Executors map[string]struct {
			Container *struct {
				Image string `json:"image"`
			} `json:"container"`
		} `json:"executors"`
	} `json:"deploymentSpec"`
}

// Component is a DAG or something that an executor runs.
type Component struct {
	DAG *struct {
		Tasks map[string]TaskSpec `json:"tasks"`
	} `json:"dag"`
	ExecutorLabel string `json:"executorLabel"`
}

// TaskSpec is a task of a DAG.
type TaskSpec struct {
	Info struct {
		Name string `json:"name"`
	} `json:"taskInfo"`
	Component struct {
		Name string `json:"name"`
	} `json:"componentRef"`
	Needs   []string `json:"dependentTasks"`
	Trigger struct {
		Condition string `json:"condition"`
		Strategy  string `json:"strategy"`
	} `json:"triggerPolicy"`
	Inputs struct {
		Parameters map[string]struct {
			TaskOutput *struct {
				Producer string `json:"producerTask"`
			} `json:"taskOutputParameter"`
			FinalStatus *struct {
				Producer string `json:"producerTask"`
			} `json:"taskFinalStatus"`
		} `json:"parameters"`
		Artifacts map[string]struct {
			TaskOutput *struct {
				Producer string `json:"producerTask"`
			} `json:"taskOutputArtifact"`
		} `json:"artifacts"`
	} `json:"inputs"`
	Iterator *struct {
		Items struct {
			Raw string `json:"raw"`
		} `json:"items"`
	} `json:"parameterIterator"`
	ArtifactIterator *json.RawMessage `json:"artifactIterator"`
}

// Loop says whether the task is repeated.
func (t TaskSpec) Loop() bool { return t.Iterator != nil || t.ArtifactIterator != nil }

// Always says whether the task runs whatever became of those before it.
func (t TaskSpec) Always() bool { return t.Trigger.Strategy == "ALL_UPSTREAM_TASKS_COMPLETED" }

// Upstream are the tasks that must have ended before this one: named ones and those whose outputs it takes.
func (t TaskSpec) Upstream() map[string]bool {
	upstream := map[string]bool{}
	for _, name := range t.Needs {
		upstream[name] = true
	}
	for _, p := range t.Inputs.Parameters {
		if p.TaskOutput != nil {
			upstream[p.TaskOutput.Producer] = true
		}
		if p.FinalStatus != nil && p.FinalStatus.Producer != "" {
			upstream[p.FinalStatus.Producer] = true
		}
	}
	for _, a := range t.Inputs.Artifacts {
		if a.TaskOutput != nil {
			upstream[a.TaskOutput.Producer] = true
		}
	}
	return upstream
}

// ReadPipeline reads the first document of a compiled pipeline, YAML or JSON.
func ReadPipeline(path string) (*Pipeline, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("read pipeline: %w", err)
	}
	return parsePipeline(text)
}

func parsePipeline(text []byte) (*Pipeline, error) {
	for document := range bytes.SplitSeq(text, []byte("\n---\n")) {
		var p Pipeline
		if err := yaml.Unmarshal(document, &p); err != nil {
			return nil, fmt.Errorf("read pipeline: %w", err)
		}
		if p.Root.DAG != nil {
			return &p, nil
		}
	}
	return &Pipeline{}, nil
}
