#include "textflag.h"

// func setFloatControl(v uint32)
TEXT ·setFloatControl(SB), NOSPLIT, $0-4
	MOVWU v+0(FP), R0
	MSR   R0, FPCR
	RET

// func floatControl() uint32
TEXT ·floatControl(SB), NOSPLIT, $0-4
	MRS  FPCR, R0
	MOVW R0, ret+0(FP)
	RET

// func pause()
// YIELD does nothing on most cores; ISB stalls the pipeline for about as long as PAUSE does on amd64.
TEXT ·pause(SB), NOSPLIT, $0-0
	ISB $15
	RET
