import Synchronization

/// A protocol of the node: the label of metrics shared by several protocols. Each protocol declares its own as a static member in an extension.
///
/// The value has an index, unique in the process and assigned at the declaration, so that ``Counters`` finds its cells without a lookup.
public struct ProtocolLabel: MetricLabel, RawRepresentable, Hashable {
    /// The declared labels of the whole process, by index.
    private static let declared = Mutex<[String]>([])

    package static let labelName = "protocol"
    /// The name in metrics and logs.
    public let rawValue: String
    let index: Int

    /// Declares a label.
    ///
    /// - Parameter name: a constant. A name that was declared before gives the same label.
    package init(_ name: String) {
        rawValue = name
        index = Self.declared.withLock { declared in
            if let index = declared.firstIndex(of: name) { return index }
            declared.append(name)
            return declared.count - 1
        }
    }

    /// nil unless the label is declared.
    public init?(rawValue: String) {
        guard Self.declared.withLock({ $0.contains(rawValue) }) else { return nil }
        self.init(rawValue)
    }

    /// The labels declared until now.
    public static var allCases: [ProtocolLabel] { declared.withLock(\.self).map(Self.init) }

    /// Status as deployed.
    package static let status = ProtocolLabel("status")
    /// Any other protocol.
    package static let other = ProtocolLabel("other")
    /// Shared by all protocols of a node.
    package static let shared = ProtocolLabel("shared")
}
