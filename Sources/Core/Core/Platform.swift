/// The push service of a device token. The raw values are gorush's; those of APNs and Firebase are also those of Status' TokenType.
public enum Platform: Int32, Sendable, CaseIterable, Codable {
    case apn = 1
    case firebase = 2
    case huawei = 3

    /// The name in options, logs and the output of admin commands.
    public var name: String {
        switch self {
        case .apn: "apn"
        case .firebase: "firebase"
        case .huawei: "huawei"
        }
    }
}
