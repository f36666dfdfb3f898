/// The reason why a node can't run. The message says how to fix it.
package struct NodeError: Error, Hashable, Sendable, CustomStringConvertible {
    package let message: String
    package var description: String { message }

    package init(message: String) {
        self.message = message
    }
}
