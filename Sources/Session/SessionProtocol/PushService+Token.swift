import Core

extension PushService {
    /// Valid lengths of a token in Unicode scalars.
    var tokenLengths: ClosedRange<Int> { isApple ? 64...64 : 1...4096 }
}
