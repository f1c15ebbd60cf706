package template

// expr is a node that has a value.
type expr interface {
	pos() int
	eval(r *render, s *scope) (value, error)
}

// stmt is a node that writes output or changes a scope.
type stmt interface {
	pos() int
	exec(r *render, s *scope) (flow, error)
}

// flow tells how a statement ended.
type flow int

const (
	flowNext flow = iota
	flowBreak
	flowContinue
)

// at is the offset of a node in the template's text.
type at int

func (a at) pos() int { return int(a) }

// Expressions.
type (
	literal struct {
		at
		val value // immutable
	}
	nameExpr struct {
		at
		name string
	}
	sequenceExpr struct { // a list or a tuple
		at
		items []expr
		tuple bool
	}
	dictExpr struct {
		at
		keys, vals []expr
	}
	attrExpr struct { // obj.name
		at
		obj  expr
		name string
	}
	itemExpr struct { // obj[key]
		at
		obj, key expr
	}
	sliceExpr struct { // obj[start:stop:step]; a missing bound is nil
		at
		obj, start, stop, step expr
	}
	callExpr struct {
		at
		fn   expr
		args argList
	}
	filterExpr struct {
		at
		name string
		fn   filterFunc // nil: no such filter
		in   expr       // nil in a filter or set block, which applies it to its text
		args argList
	}
	testExpr struct {
		at
		name string
		fn   testFunc // nil: no such test
		in   expr
		args argList
	}
	notExpr struct {
		at
		x expr
	}
	signExpr struct {
		at
		neg bool
		x   expr
	}
	binaryExpr struct {
		at
		op   string // + - * / // % **
		l, r expr
	}
	concatExpr struct { // a ~ b ~ c
		at
		parts []expr
	}
	compareExpr struct { // a < b < c
		at
		first expr
		ops   []string // == != < <= > >= in, "not in"
		rest  []expr
	}
	logicExpr struct {
		at
		or   bool
		l, r expr
	}
	condExpr struct { // then if test else alt; alt may be nil
		at
		then, test, alt expr
	}
)

// argList holds the arguments of a call as written.
type argList struct {
	pos    []expr
	kw     []kwArg
	star   expr // *star, or nil
	starKW expr // **starKW, or nil
}

type kwArg struct {
	name string
	val  expr
}

// Statements.
type (
	dataStmt struct {
		at
		text string
	}
	printStmt struct {
		at
		x expr
	}
	ifStmt struct {
		at
		test      expr
		then, alt []stmt
	}
	forStmt struct {
		at
		target     target
		iter, test expr // test may be nil
		body, alt  []stmt
	}
	setStmt struct {
		at
		target target
		val    expr
	}
	setBlockStmt struct {
		at
		target  target
		filters []*filterExpr // applied to the text in order
		body    []stmt
	}
	macroStmt struct {
		at
		name     string
		params   []string
		defaults []expr // those of the last parameters
		body     []stmt
		varargs  bool // the body uses this name
		kwargs   bool
	}
	callStmt struct {
		at
		caller *macroStmt
		call   *callExpr
	}
	filterStmt struct {
		at
		filters []*filterExpr
		body    []stmt
	}
	withStmt struct {
		at
		targets []target
		vals    []expr
		body    []stmt
	}
	generationStmt struct { // marks the text that the assistant made
		at
		body []stmt
	}
	loopStmt struct { // break or continue
		at
		flow flow
	}
)

// target is what an assignment binds: a name, an attribute of a namespace, or a
// tuple of targets.
type target struct {
	at
	name  string
	attr  string   // of the namespace called name, or ""
	parts []target // not nil for a tuple
}
