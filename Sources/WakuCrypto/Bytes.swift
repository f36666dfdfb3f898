import COpenSSL

/// Lower-case hexadecimal digits, two a byte.
public func hexString(_ bytes: some Sequence<UInt8>) -> String {
    let digits = Array("0123456789abcdef".utf8)
    var text: [UInt8] = []
    text.reserveCapacity(bytes.underestimatedCount * 2)
    for byte in bytes {
        text.append(digits[Int(byte >> 4)])
        text.append(digits[Int(byte & 15)])
    }
    return String(decoding: text, as: UTF8.self)
}

/// nil unless all of it are pairs of hexadecimal digits, of either case.
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

/// The value of a hexadecimal digit in ASCII.
public func hexNibble(_ digit: UInt8) -> UInt8? {
    switch digit {
    case UInt8(ascii: "0")...UInt8(ascii: "9"): digit - UInt8(ascii: "0")
    case UInt8(ascii: "a")...UInt8(ascii: "f"): digit - UInt8(ascii: "a") + 10
    case UInt8(ascii: "A")...UInt8(ascii: "F"): digit - UInt8(ascii: "A") + 10
    default: nil
    }
}

/// Compares without telling by its time where the two differ. Their lengths are no secret.
public func constantTimeEqual(_ left: [UInt8], _ right: [UInt8]) -> Bool {
    left.count == right.count && CRYPTO_memcmp(left, right, left.count) == 0
}

/// From the system's generator, by way of libcrypto's. For what is no secret: nonces, ids, padding.
public func randomBytes(_ count: Int) -> [UInt8] {
    RandomReserve.take(count)
}

/// libcrypto's own calls with arguments that it can't refuse fail for lack of memory or entropy alone: there is no way on from there.
func require(_ result: Int32, _ function: StaticString = #function) {
    precondition(result == 1, "libcrypto failed in \(function)")
}
