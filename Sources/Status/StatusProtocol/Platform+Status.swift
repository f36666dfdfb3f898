public import Core

extension Platform {
    /// The push services of the deployed protocol, without extensions.
    public static let ofStatus: [Platform] = [.apn, .firebase]

    /// Returns nil for a token type that is not one of Status' push services.
    init?(tokenType: UInt32) {
        if tokenType == Self.webPushTokenType {
            self = .webPush
            return
        }
        guard let platform = Int32(exactly: tokenType).flatMap(Platform.init(rawValue:)), Self.ofStatus.contains(platform) else {
            return nil
        }
        self = platform
    }

    /// Status' TokenType.
    public var tokenType: UInt32 { self == .webPush ? Self.webPushTokenType : UInt32(rawValue) }

    /// An extension of the TokenType: the device token is the JSON of a Web Push subscription. Deployed servers accept it and lose it.
    public static let webPushTokenType: UInt32 = 3
}
