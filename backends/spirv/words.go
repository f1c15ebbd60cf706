package spirv

// Numbers of the SPIR-V specification, version 1.3 and SPV_KHR_integer_dot_product.

const (
	magic   = 0x07230203
	version = 0x00010300
)

// opcode is an instruction's number.
type opcode uint32

const (
	opExtension            opcode = 10
	opExtInstImport        opcode = 11
	opExtInst              opcode = 12
	opMemoryModel          opcode = 14
	opEntryPoint           opcode = 15
	opExecutionMode        opcode = 16
	opCapability           opcode = 17
	opTypeVoid             opcode = 19
	opTypeBool             opcode = 20
	opTypeInt              opcode = 21
	opTypeFloat            opcode = 22
	opTypeVector           opcode = 23
	opTypeArray            opcode = 28
	opTypeRuntimeArray     opcode = 29
	opTypeStruct           opcode = 30
	opTypePointer          opcode = 32
	opTypeFunction         opcode = 33
	opConstantTrue         opcode = 41
	opConstantFalse        opcode = 42
	opConstant             opcode = 43
	opSpecConstant         opcode = 50
	opSpecConstantOp       opcode = 52
	opFunction             opcode = 54
	opFunctionParameter    opcode = 55
	opFunctionEnd          opcode = 56
	opFunctionCall         opcode = 57
	opVariable             opcode = 59
	opLoad                 opcode = 61
	opStore                opcode = 62
	opAccessChain          opcode = 65
	opDecorate             opcode = 71
	opMemberDecorate       opcode = 72
	opDecorationGroup      opcode = 73
	opGroupDecorate        opcode = 74
	opConvertSToF          opcode = 111
	opUConvert             opcode = 113
	opSConvert             opcode = 114
	opBitcast              opcode = 124
	opIAdd                 opcode = 128
	opFAdd                 opcode = 129
	opISub                 opcode = 130
	opFSub                 opcode = 131
	opIMul                 opcode = 132
	opFMul                 opcode = 133
	opUDiv                 opcode = 134
	opUMod                 opcode = 137
	opLogicalOr            opcode = 166
	opLogicalAnd           opcode = 167
	opLogicalNot           opcode = 168
	opSelect               opcode = 169
	opIEqual               opcode = 170
	opINotEqual            opcode = 171
	opUGreaterThan         opcode = 172
	opSGreaterThan         opcode = 173
	opUGreaterThanEqual    opcode = 174
	opULessThan            opcode = 176
	opSLessThan            opcode = 177
	opSLessThanEqual       opcode = 179
	opFOrdEqual            opcode = 180
	opFOrdLessThan         opcode = 184
	opFOrdLessThanEqual    opcode = 188
	opShiftRightLogical    opcode = 194
	opShiftRightArithmetic opcode = 195
	opShiftLeftLogical     opcode = 196
	opBitwiseOr            opcode = 197
	opBitwiseXor           opcode = 198
	opBitwiseAnd           opcode = 199
	opNot                  opcode = 200
	opBitFieldInsert       opcode = 201
	opBitFieldSExtract     opcode = 202
	opBitFieldUExtract     opcode = 203
	opControlBarrier       opcode = 224
	opAtomicAnd            opcode = 240
	opAtomicOr             opcode = 241
	opPhi                  opcode = 245
	opLoopMerge            opcode = 246
	opSelectionMerge       opcode = 247
	opLabel                opcode = 248
	opBranch               opcode = 249
	opBranchConditional    opcode = 250
	opReturn               opcode = 253
	opReturnValue          opcode = 254
	opModuleProcessed      opcode = 330
	opShuffle              opcode = 345 // GroupNonUniform
	opShuffleXor           opcode = 346
	opSDot                 opcode = 4450
	opSUDot                opcode = 4452
)

// capability is a number of OpCapability.
type capability uint32

const (
	shader          capability = 1
	subgroupBasic   capability = 61
	subgroupShuffle capability = 65
	storage16       capability = 4433
	storage8        capability = 4448
	dotPacked       capability = 6018
	dotProduct      capability = 6019
)

const ( // storage classes
	inInput     = 1
	inWorkgroup = 4
	inPrivate   = 6
	inFunction  = 7
	inPush      = 9
	inStorage   = 12
)

const ( // decorations
	specID        = 1
	block         = 2
	arrayStride   = 6
	builtIn       = 11
	aliased       = 20
	nonWritable   = 24
	binding       = 33
	descriptorSet = 34
	offset        = 35
	noContraction = 42
)

const ( // built-in variables
	numWorkgroups   = 24
	workgroupID     = 26
	invocationIndex = 29
	subgroupID      = 40
	subgroupLane    = 41
)

const (
	addressingLogical = 0
	memoryGLSL450     = 1
	modelGLCompute    = 5
	modeLocalSize     = 17

	scopeDevice    = 1
	scopeWorkgroup = 2
	scopeSubgroup  = 3

	relaxed         = 0
	workgroupMemory = 0x108 // acquire and release

	packed4x8 = 0

	glslFma = 50 // of GLSL.std.450
)
