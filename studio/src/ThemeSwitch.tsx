// System, light or dark.
import { Glyph, type IconName } from "./icons";
import { chooseTheme, THEMES, useTheme, type Theme } from "./theme";

const ICONS: Record<Theme, IconName> = { system: "screen", light: "sun", dark: "moon" };
const LABELS: Record<Theme, string> = { system: "Like the system", light: "Light", dark: "Dark" };

export function ThemeSwitch() {
  const { chosen } = useTheme();
  return (
    <div className="themes" role="radiogroup" aria-label="Colours">
      {THEMES.map((theme) => (
        <label key={theme} title={LABELS[theme]}>
          <input
            type="radio"
            name="theme"
            value={theme}
            checked={chosen === theme}
            onChange={() => chooseTheme(theme)}
            aria-label={LABELS[theme]}
          />
          <Glyph name={ICONS[theme]} size={16} />
        </label>
      ))}
    </div>
  );
}
