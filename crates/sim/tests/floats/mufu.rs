//! The multi-function unit against checksums of an H200's results: whole binades, inputs spread over all of f32,
//! and all inputs of the 16-bit formats.

use lanescope_ir::op::LaneFn;
use lanescope_ir::op::float::{FloatFn, HalfFormat, Special};
use lanescope_sim::lane::eval;

/// Function, first input, number of consecutive inputs, checksum.
#[rustfmt::skip]
const BINADES: &[(Special, u32, u32, u64)] = &[
    (Special::Rcp, 0x3f800000, 1 << 23, 0x24efd491fa01edeb),
    (Special::Rsq, 0x3f800000, 1 << 23, 0xa5fb6670786649af),
    (Special::Rsq, 0x40000000, 1 << 23, 0x0c4a18d84d526b7c),
    (Special::Sqrt, 0x3f800000, 1 << 23, 0xbfad23e154fc3120),
    (Special::Sqrt, 0x40000000, 1 << 23, 0x4fdc2bf2b95d3b8b),
    (Special::Lg2, 0x3f000000, 1 << 23, 0x5c50da1e1502b650),
    (Special::Lg2, 0x3f800000, 1 << 23, 0xbd2a3125e8ea0991),
    (Special::Lg2, 0x40000000, 1 << 23, 0x9ce4766ff6250644),
    (Special::Lg2, 0x3c000000, 1 << 23, 0xe3a2850f3786cf24),
    (Special::Ex2, 0x3f000000, 1 << 23, 0xca18cda8c9d566be),
    (Special::Ex2, 0x3f800000, 1 << 23, 0x364ceaef2f00ed16),
    (Special::Ex2, 0x3e800000, 1 << 23, 0xb896cb1cadc00f50),
    (Special::Ex2, 0x3e000000, 1 << 23, 0x00971e8b21b77b10),
    (Special::Ex2, 0x3c000000, 1 << 23, 0x7f127befcee88100),
    (Special::Ex2, 0x41000000, 1 << 23, 0x7f81324296bbef88),
    (Special::Ex2, 0xbf000000, 1 << 23, 0x12fc087e444ad342),
    (Special::Ex2, 0xbf800000, 1 << 23, 0xa47f101e9cee9253),
    (Special::Sin, 0x3f000000, 1 << 23, 0xf9d11d9b19a8f6f8),
    (Special::Sin, 0x3e800000, 1 << 23, 0x0f120dec52abb730),
    (Special::Sin, 0x3e000000, 1 << 23, 0x9fc68f75ffcdebf2),
    (Special::Sin, 0x3d800000, 1 << 23, 0xe4fb9c7970979c30),
    (Special::Sin, 0x3c000000, 1 << 23, 0xea5bdc7db23ea400),
    (Special::Sin, 0x3f800000, 1 << 23, 0xe4e7cd4962f5be20),
    (Special::Sin, 0x41000000, 1 << 23, 0xac410baee8650910),
    (Special::Cos, 0x3f000000, 1 << 23, 0x110a4c6f23a8f6f8),
    (Special::Cos, 0x3e800000, 1 << 23, 0x46cb108b1e8bf4d8),
    (Special::Cos, 0x3e000000, 1 << 23, 0x4db4f04b4b8fe4a2),
    (Special::Cos, 0x3d800000, 1 << 23, 0x7bed4743a0d98a40),
    (Special::Cos, 0x3c000000, 1 << 23, 0x5c4de65dc5c25500),
    (Special::Cos, 0x3f800000, 1 << 23, 0x45f96458baf5be20),
    (Special::Tanh, 0x3f000000, 1 << 23, 0x934cf2cb37728ac0),
    (Special::Tanh, 0x3e800000, 1 << 23, 0xc084f1a49a875400),
    (Special::Tanh, 0x3e000000, 1 << 23, 0x4aa052064abe9180),
    (Special::Tanh, 0x3d800000, 1 << 23, 0x2b14771d692f2b00),
    (Special::Tanh, 0x3f800000, 1 << 23, 0xda288b6ad2e27ee0),
    (Special::Tanh, 0x40000000, 1 << 23, 0xab09bd7f1dd98bb0),
    (Special::Tanh, 0x3c000000, 1 << 23, 0xd8ed0f9ce571ed80),
    (Special::Sin, 0xbf000000, 1 << 23, 0x7c511d9b19a8f6f8),
    (Special::Tanh, 0x3b800000, 1 << 23, 0x193e63e20db21400),
    (Special::Tanh, 0x3c800000, 1 << 23, 0x807fafd8286df200),
    (Special::Tanh, 0x3d000000, 1 << 23, 0xcbc5c5c6e8633140),
    (Special::Tanh, 0x40800000, 1 << 23, 0x4e0ea5821eb26a90),
    (Special::Rcp64High, 0x3ff00000, 1 << 20, 0x5f93ae68635a258b),
    (Special::Rcp64High, 0x40000000, 1 << 20, 0x5cd1b868635a258b),
    (Special::Rsq64High, 0x3ff00000, 1 << 20, 0xbf5bf7197383ed15),
    (Special::Rsq64High, 0x40000000, 1 << 20, 0x32c7a7a39a7f5ecf),
];

/// Function, checksum over inputs i * 65521 modulo 2^32 for i below 65536.
#[rustfmt::skip]
const SPREAD: &[(Special, u64)] = &[
    (Special::Rcp, 0x24bb80c517c7c54a),
    (Special::Rsq, 0x9b81ae8d1705a3f3),
    (Special::Sqrt, 0x912fbc6633350ce1),
    (Special::Lg2, 0xd74dd41aa5b39eac),
    (Special::Ex2, 0x0384c881ba2bcc40),
    (Special::Sin, 0x7bec7e3ec1f0c53c),
    (Special::Cos, 0xfee4686d679024d8),
    (Special::Tanh, 0x77671cf878edb2e5),
    (Special::Rcp64High, 0x25aea8f87ab64f52),
    (Special::Rsq64High, 0x18f032ae319bcce2),
];

/// Function, format, checksum over all 65536 inputs.
#[rustfmt::skip]
const HALVES: &[(Special, HalfFormat, u64)] = &[
    (Special::Ex2, HalfFormat::F16, 0x35111fa2e69bbd7f),
    (Special::Tanh, HalfFormat::F16, 0x6183606e260bb080),
    (Special::Ex2, HalfFormat::Bf16, 0x37e335f6ef47b42d),
    (Special::Tanh, HalfFormat::Bf16, 0xfc0b3e017cf0eee6),
];

/// Position-dependent sum of the results.
fn checksum(f: FloatFn, inputs: impl Iterator<Item = u32>) -> u64 {
    let f = LaneFn::Float(f);
    inputs.zip(0u64..).fold(0, |sum, (x, i)| {
        let result = eval(&f, [x, 0, 0, 0, 0, 0], [true; 3]).d[0];
        sum.wrapping_add((u64::from(result) + 1).wrapping_mul(i.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1))
    })
}

#[test]
fn whole_binades() {
    let wrong: Vec<_> = BINADES
        .iter()
        .filter(|&&(function, start, count, sum)| checksum(FloatFn::Special(function), start..start + count) != sum)
        .map(|&(function, start, ..)| format!("{function:?} from {start:#010x}"))
        .collect();
    assert!(wrong.is_empty(), "{wrong:?}");
}

#[test]
fn spread_inputs() {
    let inputs = || (0..65536u32).map(|i| i.wrapping_mul(65521));
    let wrong: Vec<_> =
        SPREAD.iter().filter(|&&(f, sum)| checksum(FloatFn::Special(f), inputs()) != sum).map(|s| s.0).collect();
    assert!(wrong.is_empty(), "{wrong:?}");
}

#[test]
fn all_halves() {
    let wrong: Vec<_> = HALVES
        .iter()
        .filter(|&&(function, format, sum)| {
            checksum(FloatFn::SpecialHalf { function, high: false, format }, 0..65536) != sum
        })
        .collect();
    assert!(wrong.is_empty(), "{wrong:?}");
}
