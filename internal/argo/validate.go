package argo

// Validate gives everything that is wrong with the object to run and what it refers to.
func (b *Bundle) Validate(opts Options) Problems {
	out := append(Problems(nil), b.problems...)
	if b.run == nil {
		out = append(out, Problem{File: b.docs[0].file, Message: "holds nothing that can be run; give a Workflow, WorkflowTemplate, ClusterWorkflowTemplate or CronWorkflow"})
	}
	return out
}
