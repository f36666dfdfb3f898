/// The original Keccak with 256 bits of output, as in Ethereum: padding 0x01, not SHA3-256's 0x06. OpenSSL 3.0 lacks it.
public enum Keccak256 {
    /// Length of a digest in bytes.
    public static let byteCount = 32

    /// Bytes absorbed by each permutation: 1600 bits less twice the security of 256 bits.
    private static let rate = 136

    /// The digest of an array, 32 bytes.
    public static func hash(_ bytes: [UInt8]) -> [UInt8] {
        bytes.withUnsafeBufferPointer { hash($0) }
    }

    /// The digest of a slice, 32 bytes, without copying it.
    public static func hash(_ bytes: ArraySlice<UInt8>) -> [UInt8] {
        bytes.withUnsafeBufferPointer { hash($0) }
    }

    static func hash(_ input: UnsafeBufferPointer<UInt8>) -> [UInt8] {
        withUnsafeTemporaryAllocation(byteCount: 200 + rate, alignment: 8) { memory -> [UInt8] in
            let state = UnsafeMutableRawBufferPointer(rebasing: memory[..<200])
            let last = UnsafeMutableRawBufferPointer(rebasing: memory[200...])
            memory.initializeMemory(as: UInt8.self, repeating: 0)
            var rest = UnsafeRawBufferPointer(input)
            while rest.count >= rate {
                absorb(UnsafeRawBufferPointer(rebasing: rest[..<rate]), into: state)
                rest = UnsafeRawBufferPointer(rebasing: rest[rate...])
            }
            last.copyMemory(from: rest)
            last[rest.count] ^= 0x01
            last[rate - 1] ^= 0x80
            absorb(UnsafeRawBufferPointer(last), into: state)
            return [UInt8](unsafeUninitializedCapacity: byteCount) { output, count in
                UnsafeMutableRawBufferPointer(output).copyMemory(from: UnsafeRawBufferPointer(rebasing: state[..<byteCount]))
                count = byteCount
            }
        }
    }

    private static func absorb(_ block: UnsafeRawBufferPointer, into state: UnsafeMutableRawBufferPointer) {
        let lanes = state.assumingMemoryBound(to: UInt64.self)
        for lane in 0..<rate / 8 {
            lanes[lane] ^= UInt64(littleEndian: block.loadUnaligned(fromByteOffset: lane * 8, as: UInt64.self))
        }
        permute(lanes)
    }

    @inline(__always)
    private static func rotated(_ lane: UInt64, by count: UInt64) -> UInt64 {
        lane &<< count | lane &>> (64 &- count)
    }

    private static let roundConstants: [UInt64] = [
        0x0000000000000001, 0x0000000000008082, 0x800000000000808a, 0x8000000080008000,
        0x000000000000808b, 0x0000000080000001, 0x8000000080008081, 0x8000000000008009,
        0x000000000000008a, 0x0000000000000088, 0x0000000080008009, 0x000000008000000a,
        0x000000008000808b, 0x800000000000008b, 0x8000000000008089, 0x8000000000008003,
        0x8000000000008002, 0x8000000000000080, 0x000000000000800a, 0x800000008000000a,
        0x8000000080008081, 0x8000000000008080, 0x0000000080000001, 0x8000000080008008,
    ]

    /// Keccak-f[1600], FIPS 202 section 3: the steps theta, rho and pi, chi and iota, each lane in a local.
    private static func permute(_ lanes: UnsafeMutableBufferPointer<UInt64>) {
        var a0 = lanes[0]
        var a1 = lanes[1]
        var a2 = lanes[2]
        var a3 = lanes[3]
        var a4 = lanes[4]
        var a5 = lanes[5]
        var a6 = lanes[6]
        var a7 = lanes[7]
        var a8 = lanes[8]
        var a9 = lanes[9]
        var a10 = lanes[10]
        var a11 = lanes[11]
        var a12 = lanes[12]
        var a13 = lanes[13]
        var a14 = lanes[14]
        var a15 = lanes[15]
        var a16 = lanes[16]
        var a17 = lanes[17]
        var a18 = lanes[18]
        var a19 = lanes[19]
        var a20 = lanes[20]
        var a21 = lanes[21]
        var a22 = lanes[22]
        var a23 = lanes[23]
        var a24 = lanes[24]
        for constant in roundConstants {
            let c0 = a0 ^ a5 ^ a10 ^ a15 ^ a20
            let c1 = a1 ^ a6 ^ a11 ^ a16 ^ a21
            let c2 = a2 ^ a7 ^ a12 ^ a17 ^ a22
            let c3 = a3 ^ a8 ^ a13 ^ a18 ^ a23
            let c4 = a4 ^ a9 ^ a14 ^ a19 ^ a24
            let d0 = c4 ^ rotated(c1, by: 1)
            let d1 = c0 ^ rotated(c2, by: 1)
            let d2 = c1 ^ rotated(c3, by: 1)
            let d3 = c2 ^ rotated(c4, by: 1)
            let d4 = c3 ^ rotated(c0, by: 1)
            let b0 = a0 ^ d0
            let b1 = rotated(a6 ^ d1, by: 44)
            let b2 = rotated(a12 ^ d2, by: 43)
            let b3 = rotated(a18 ^ d3, by: 21)
            let b4 = rotated(a24 ^ d4, by: 14)
            let b5 = rotated(a3 ^ d3, by: 28)
            let b6 = rotated(a9 ^ d4, by: 20)
            let b7 = rotated(a10 ^ d0, by: 3)
            let b8 = rotated(a16 ^ d1, by: 45)
            let b9 = rotated(a22 ^ d2, by: 61)
            let b10 = rotated(a1 ^ d1, by: 1)
            let b11 = rotated(a7 ^ d2, by: 6)
            let b12 = rotated(a13 ^ d3, by: 25)
            let b13 = rotated(a19 ^ d4, by: 8)
            let b14 = rotated(a20 ^ d0, by: 18)
            let b15 = rotated(a4 ^ d4, by: 27)
            let b16 = rotated(a5 ^ d0, by: 36)
            let b17 = rotated(a11 ^ d1, by: 10)
            let b18 = rotated(a17 ^ d2, by: 15)
            let b19 = rotated(a23 ^ d3, by: 56)
            let b20 = rotated(a2 ^ d2, by: 62)
            let b21 = rotated(a8 ^ d3, by: 55)
            let b22 = rotated(a14 ^ d4, by: 39)
            let b23 = rotated(a15 ^ d0, by: 41)
            let b24 = rotated(a21 ^ d1, by: 2)
            a0 = b0 ^ (~b1 & b2) ^ constant
            a1 = b1 ^ (~b2 & b3)
            a2 = b2 ^ (~b3 & b4)
            a3 = b3 ^ (~b4 & b0)
            a4 = b4 ^ (~b0 & b1)
            a5 = b5 ^ (~b6 & b7)
            a6 = b6 ^ (~b7 & b8)
            a7 = b7 ^ (~b8 & b9)
            a8 = b8 ^ (~b9 & b5)
            a9 = b9 ^ (~b5 & b6)
            a10 = b10 ^ (~b11 & b12)
            a11 = b11 ^ (~b12 & b13)
            a12 = b12 ^ (~b13 & b14)
            a13 = b13 ^ (~b14 & b10)
            a14 = b14 ^ (~b10 & b11)
            a15 = b15 ^ (~b16 & b17)
            a16 = b16 ^ (~b17 & b18)
            a17 = b17 ^ (~b18 & b19)
            a18 = b18 ^ (~b19 & b15)
            a19 = b19 ^ (~b15 & b16)
            a20 = b20 ^ (~b21 & b22)
            a21 = b21 ^ (~b22 & b23)
            a22 = b22 ^ (~b23 & b24)
            a23 = b23 ^ (~b24 & b20)
            a24 = b24 ^ (~b20 & b21)
        }
        lanes[0] = a0
        lanes[1] = a1
        lanes[2] = a2
        lanes[3] = a3
        lanes[4] = a4
        lanes[5] = a5
        lanes[6] = a6
        lanes[7] = a7
        lanes[8] = a8
        lanes[9] = a9
        lanes[10] = a10
        lanes[11] = a11
        lanes[12] = a12
        lanes[13] = a13
        lanes[14] = a14
        lanes[15] = a15
        lanes[16] = a16
        lanes[17] = a17
        lanes[18] = a18
        lanes[19] = a19
        lanes[20] = a20
        lanes[21] = a21
        lanes[22] = a22
        lanes[23] = a23
        lanes[24] = a24
    }
}
