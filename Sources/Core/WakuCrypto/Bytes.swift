import COpenSSL

/// Lower-case hexadecimal digits, two per byte.
@inlinable
public func hexString(_ bytes: some Sequence<UInt8>) -> String {
    func digit(_ value: UInt8) -> UInt8 { value < 10 ? UInt8(ascii: "0") + value : UInt8(ascii: "a") + value - 10 }
    var text: [UInt8] = []
    text.reserveCapacity(bytes.underestimatedCount * 2)
    for byte in bytes {
        text.append(digit(byte >> 4))
        text.append(digit(byte & 15))
    }
    return String(decoding: text, as: UTF8.self)
}

/// nil unless the text consists of pairs of hexadecimal digits, of either case.
@inlinable
public func bytes(hex: some StringProtocol) -> [UInt8]? {
    let digits = Array(hex.utf8)
    guard digits.count.isMultiple(of: 2) else { return nil }
    var result: [UInt8] = []
    result.reserveCapacity(digits.count / 2)
    for index in stride(from: 0, to: digits.count, by: 2) {
        guard let high = hexNibble(digits[index]), let low = hexNibble(digits[index + 1]) else { return nil }
        result.append(high << 4 | low)
    }
    return result
}

/// The value of an ASCII hexadecimal digit of either case; nil for other bytes.
@inlinable
public func hexNibble(_ digit: UInt8) -> UInt8? {
    switch digit {
    case UInt8(ascii: "0")...UInt8(ascii: "9"): digit - UInt8(ascii: "0")
    case UInt8(ascii: "a")...UInt8(ascii: "f"): digit - UInt8(ascii: "a") + 10
    case UInt8(ascii: "A")...UInt8(ascii: "F"): digit - UInt8(ascii: "A") + 10
    default: nil
    }
}

/// Compares in constant time. The lengths are not secret.
public func constantTimeEqual(_ left: [UInt8], _ right: [UInt8]) -> Bool {
    left.withUnsafeBytes { left in right.withUnsafeBytes { constantTimeEqual(left, $0) } }
}

func constantTimeEqual(_ left: UnsafeRawBufferPointer, _ right: UnsafeRawBufferPointer) -> Bool {
    left.count == right.count && (left.isEmpty || CRYPTO_memcmp(left.baseAddress, right.baseAddress, left.count) == 0)
}

/// Random bytes from libcrypto's generator, seeded by the system. For values that are not secret: nonces, ids, padding.
public func randomBytes(_ count: Int) -> [UInt8] {
    RandomReserve.take(count)
}

/// Stops the program if a libcrypto call failed. With valid arguments, calls fail only for lack of memory or entropy, from which it can't recover.
func require(_ result: Int32, _ function: StaticString = #function) {
    precondition(result == 1, "libcrypto failed in \(function)")
}
