/// The input of a connection as a sequence of steps: `kind(1) ‖ length(1) ‖ bytes`. The last one may be shorter than its length.
struct Steps: Sequence, IteratorProtocol {
    private var rest: ArraySlice<UInt8>

    init(_ input: [UInt8]) {
        rest = input[...]
    }

    mutating func next() -> (kind: UInt8, bytes: [UInt8])? {
        guard let kind = rest.popFirst(), let length = rest.popFirst() else { return nil }
        defer { rest = rest.dropFirst(Int(length)) }
        return (kind, Array(rest.prefix(Int(length))))
    }

    /// Steps of more than 255 bytes are divided.
    static func encode(_ steps: [(kind: UInt8, bytes: [UInt8])]) -> [UInt8] {
        steps.flatMap { step -> [UInt8] in
            guard !step.bytes.isEmpty else { return [step.kind, 0] }
            return stride(from: 0, to: step.bytes.count, by: 255).flatMap { start in
                let part = step.bytes[start..<Swift.min(start + 255, step.bytes.count)]
                return [step.kind, UInt8(part.count)] + part
            }
        }
    }
}
