Ï.
›u
.
Identity

input"T
output"T"	
Ttype
C
Placeholder
output"dtype"
dtypetype"
shapeshape:"serve*1.15.52v1.15.4-39-g3db52be™
f
in_bfloat16Placeholder*#
_output_shapes
:ÿÿÿÿÿÿÿÿÿ*
dtype0*
shape:ÿÿÿÿÿÿÿÿÿ
O
IdentityIdentityin_bfloat16*
T0*#
_output_shapes
:ÿÿÿÿÿÿÿÿÿ
b
in_boolPlaceholder*#
_output_shapes
:ÿÿÿÿÿÿÿÿÿ*
shape:ÿÿÿÿÿÿÿÿÿ*
dtype0

M

Identity_1Identityin_bool*
T0
*#
_output_shapes
:ÿÿÿÿÿÿÿÿÿ
h
in_complex128Placeholder*#
_output_shapes
:ÿÿÿÿÿÿÿÿÿ*
shape:ÿÿÿÿÿÿÿÿÿ*
dtype0
S

Identity_2Identityin_complex128*#
_output_shapes
:ÿÿÿÿÿÿÿÿÿ*
T0
g
in_complex64Placeholder*
shape:ÿÿÿÿÿÿÿÿÿ*#
_output_shapes
:ÿÿÿÿÿÿÿÿÿ*
dtype0
R

Identity_3Identityin_complex64*#
_output_shapes
:ÿÿÿÿÿÿÿÿÿ*
T0
e

in_float16Placeholder*
dtype0*
shape:ÿÿÿÿÿÿÿÿÿ*#
_output_shapes
:ÿÿÿÿÿÿÿÿÿ
P

Identity_4Identity
in_float16*
T0*#
_output_shapes
:ÿÿÿÿÿÿÿÿÿ
e

in_float32Placeholder*
shape:ÿÿÿÿÿÿÿÿÿ*#
_output_shapes
:ÿÿÿÿÿÿÿÿÿ*
dtype0
P

Identity_5Identity
in_float32*#
_output_shapes
:ÿÿÿÿÿÿÿÿÿ*
T0
e

in_float64Placeholder*
dtype0*#
_output_shapes
:ÿÿÿÿÿÿÿÿÿ*
shape:ÿÿÿÿÿÿÿÿÿ
P

Identity_6Identity
in_float64*
T0*#
_output_shapes
:ÿÿÿÿÿÿÿÿÿ
c
in_int16Placeholder*
dtype0*#
_output_shapes
:ÿÿÿÿÿÿÿÿÿ*
shape:ÿÿÿÿÿÿÿÿÿ
N

Identity_7Identityin_int16*
T0*#
_output_shapes
:ÿÿÿÿÿÿÿÿÿ
c
in_int32Placeholder*
shape:ÿÿÿÿÿÿÿÿÿ*
dtype0*#
_output_shapes
:ÿÿÿÿÿÿÿÿÿ
N

Identity_8Identityin_int32*#
_output_shapes
:ÿÿÿÿÿÿÿÿÿ*
T0
c
in_int64Placeholder*
shape:ÿÿÿÿÿÿÿÿÿ*#
_output_shapes
:ÿÿÿÿÿÿÿÿÿ*
dtype0	
N

Identity_9Identityin_int64*
T0	*#
_output_shapes
:ÿÿÿÿÿÿÿÿÿ
b
in_int8Placeholder*#
_output_shapes
:ÿÿÿÿÿÿÿÿÿ*
dtype0*
shape:ÿÿÿÿÿÿÿÿÿ
N
Identity_10Identityin_int8*#
_output_shapes
:ÿÿÿÿÿÿÿÿÿ*
T0
d
	in_qint16Placeholder*
shape:ÿÿÿÿÿÿÿÿÿ*#
_output_shapes
:ÿÿÿÿÿÿÿÿÿ*
dtype0
P
Identity_11Identity	in_qint16*#
_output_shapes
:ÿÿÿÿÿÿÿÿÿ*
T0
d
	in_qint32Placeholder*#
_output_shapes
:ÿÿÿÿÿÿÿÿÿ*
shape:ÿÿÿÿÿÿÿÿÿ*
dtype0
P
Identity_12Identity	in_qint32*
T0*#
_output_shapes
:ÿÿÿÿÿÿÿÿÿ
c
in_qint8Placeholder*
dtype0*#
_output_shapes
:ÿÿÿÿÿÿÿÿÿ*
shape:ÿÿÿÿÿÿÿÿÿ
O
Identity_13Identityin_qint8*#
_output_shapes
:ÿÿÿÿÿÿÿÿÿ*
T0
e

in_quint16Placeholder*#
_output_shapes
:ÿÿÿÿÿÿÿÿÿ*
shape:ÿÿÿÿÿÿÿÿÿ*
dtype0
Q
Identity_14Identity
in_quint16*#
_output_shapes
:ÿÿÿÿÿÿÿÿÿ*
T0
d
	in_quint8Placeholder*#
_output_shapes
:ÿÿÿÿÿÿÿÿÿ*
shape:ÿÿÿÿÿÿÿÿÿ*
dtype0
P
Identity_15Identity	in_quint8*
T0*#
_output_shapes
:ÿÿÿÿÿÿÿÿÿ
d
	in_stringPlaceholder*
shape:ÿÿÿÿÿÿÿÿÿ*#
_output_shapes
:ÿÿÿÿÿÿÿÿÿ*
dtype0
P
Identity_16Identity	in_string*
T0*#
_output_shapes
:ÿÿÿÿÿÿÿÿÿ
d
	in_uint16Placeholder*
shape:ÿÿÿÿÿÿÿÿÿ*#
_output_shapes
:ÿÿÿÿÿÿÿÿÿ*
dtype0
P
Identity_17Identity	in_uint16*#
_output_shapes
:ÿÿÿÿÿÿÿÿÿ*
T0
d
	in_uint32Placeholder*#
_output_shapes
:ÿÿÿÿÿÿÿÿÿ*
shape:ÿÿÿÿÿÿÿÿÿ*
dtype0
P
Identity_18Identity	in_uint32*
T0*#
_output_shapes
:ÿÿÿÿÿÿÿÿÿ
d
	in_uint64Placeholder*#
_output_shapes
:ÿÿÿÿÿÿÿÿÿ*
shape:ÿÿÿÿÿÿÿÿÿ*
dtype0
P
Identity_19Identity	in_uint64*#
_output_shapes
:ÿÿÿÿÿÿÿÿÿ*
T0
c
in_uint8Placeholder*#
_output_shapes
:ÿÿÿÿÿÿÿÿÿ*
dtype0*
shape:ÿÿÿÿÿÿÿÿÿ
O
Identity_20Identityin_uint8*
T0*#
_output_shapes
:ÿÿÿÿÿÿÿÿÿ"†*’
serving_defaultþ
.
	complex64!
in_complex64:0ÿÿÿÿÿÿÿÿÿ
(
uint32
in_uint32:0ÿÿÿÿÿÿÿÿÿ
*
quint16
in_quint16:0ÿÿÿÿÿÿÿÿÿ
&
int32

in_int32:0ÿÿÿÿÿÿÿÿÿ
$
int8
	in_int8:0ÿÿÿÿÿÿÿÿÿ
*
float64
in_float64:0ÿÿÿÿÿÿÿÿÿ
$
bool
	in_bool:0
ÿÿÿÿÿÿÿÿÿ
(
qint16
in_qint16:0ÿÿÿÿÿÿÿÿÿ
(
quint8
in_quint8:0ÿÿÿÿÿÿÿÿÿ
*
float32
in_float32:0ÿÿÿÿÿÿÿÿÿ
(
qint32
in_qint32:0ÿÿÿÿÿÿÿÿÿ
*
float16
in_float16:0ÿÿÿÿÿÿÿÿÿ
0

complex128"
in_complex128:0ÿÿÿÿÿÿÿÿÿ
,
bfloat16 
in_bfloat16:0ÿÿÿÿÿÿÿÿÿ
&
int16

in_int16:0ÿÿÿÿÿÿÿÿÿ
(
uint16
in_uint16:0ÿÿÿÿÿÿÿÿÿ
&
uint8

in_uint8:0ÿÿÿÿÿÿÿÿÿ
(
uint64
in_uint64:0ÿÿÿÿÿÿÿÿÿ
&
int64

in_int64:0	ÿÿÿÿÿÿÿÿÿ
&
qint8

in_qint8:0ÿÿÿÿÿÿÿÿÿ
(
string
in_string:0ÿÿÿÿÿÿÿÿÿ.
float16_out
Identity_4:0ÿÿÿÿÿÿÿÿÿ-
bfloat16_out

Identity:0ÿÿÿÿÿÿÿÿÿ/
quint16_out 
Identity_14:0ÿÿÿÿÿÿÿÿÿ.

uint64_out 
Identity_19:0ÿÿÿÿÿÿÿÿÿ.

uint16_out 
Identity_17:0ÿÿÿÿÿÿÿÿÿ0
complex64_out
Identity_3:0ÿÿÿÿÿÿÿÿÿ1
complex128_out
Identity_2:0ÿÿÿÿÿÿÿÿÿ.

quint8_out 
Identity_15:0ÿÿÿÿÿÿÿÿÿ,
int8_out 
Identity_10:0ÿÿÿÿÿÿÿÿÿ.

string_out 
Identity_16:0ÿÿÿÿÿÿÿÿÿ.

qint32_out 
Identity_12:0ÿÿÿÿÿÿÿÿÿ.
float64_out
Identity_6:0ÿÿÿÿÿÿÿÿÿ+
bool_out
Identity_1:0
ÿÿÿÿÿÿÿÿÿ.
float32_out
Identity_5:0ÿÿÿÿÿÿÿÿÿ-
	qint8_out 
Identity_13:0ÿÿÿÿÿÿÿÿÿ,
	int16_out
Identity_7:0ÿÿÿÿÿÿÿÿÿ,
	int64_out
Identity_9:0	ÿÿÿÿÿÿÿÿÿ,
	int32_out
Identity_8:0ÿÿÿÿÿÿÿÿÿ.

uint32_out 
Identity_18:0ÿÿÿÿÿÿÿÿÿ.

qint16_out 
Identity_11:0ÿÿÿÿÿÿÿÿÿ-
	uint8_out 
Identity_20:0ÿÿÿÿÿÿÿÿÿtensorflow/serving/predict