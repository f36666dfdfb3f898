import Core

extension PushService {
    /// Characters (Unicode scalars) of a token.
    var tokenLengths: ClosedRange<Int> { isApple ? 64...64 : 1...4096 }
}
