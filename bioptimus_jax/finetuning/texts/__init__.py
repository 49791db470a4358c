"""Fine-tuning on texts: measures, windows and heads of classes and of similarity."""
