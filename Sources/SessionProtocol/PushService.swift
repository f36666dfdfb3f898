/// The notification service of a device, as `service` names it.
package enum PushService: String, Hashable, Sendable, CaseIterable {
    case apns
    case apnsSandbox = "apns-sandbox"
    case firebase
    case huawei

    package var isApple: Bool { self == .apns || self == .apnsSandbox }

    /// Characters (Unicode scalars) of a token.
    package var tokenLengths: ClosedRange<Int> { isApple ? 64...64 : 1...4096 }
}
